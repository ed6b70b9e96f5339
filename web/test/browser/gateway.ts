// A real gateway with scripted agents. A conversation selects its script by its model.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

import { SCENARIOS, STEPS } from './scripts';

export const TOKEN = 'page-token-0123456789abcdef0123456789';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const TEAMSTER = process.env['TEAMSTER_BIN'] ?? path.join(ROOT, 'target/debug/teamster');

export class Gateway {
  readonly directory = mkdtempSync(path.join(tmpdir(), 'teamster-page-'));
  url = '';
  private child: ChildProcess | undefined;
  private port = 0;

  /** Starts a gateway. A second start listens on the same port, over the same data. */
  async start(): Promise<void> {
    if (!existsSync(TEAMSTER)) throw new Error(`${TEAMSTER} does not exist: run \`cargo build -p teamster-cli\``);
    this.writeFiles();
    const log = openSync(this.file('log'), 'a');
    const child = spawn(TEAMSTER, [
      'serve', '--config', this.file('config.toml'), '--data-dir', this.file('data'), '--listen', `127.0.0.1:${this.port}`,
    ], {
      stdio: ['ignore', 'pipe', log],
      env: {
        PATH: process.env['PATH'] ?? '', HOME: this.file('home'), TEAMSTER_TOKEN: TOKEN, AGENT_BACKEND: 'claude',
        BACKEND_CLI_PATH: this.file('agent'), WORKING_DIR: this.file('work'),
      },
    });
    this.child = child;
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
    const first = await new Promise<string>((resolve, reject) => {
      lines.once('line', resolve);
      child.once('exit', () => reject(new Error(`the gateway does not start:\n${readFileSync(this.file('log'), 'utf8')}`)));
    });
    lines.on('line', () => undefined);
    this.url = first.trim();
    this.port = Number(new URL(this.url).port);
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    const { child } = this;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exited;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }

  file(name: string): string {
    return path.join(this.directory, name);
  }

  /** Lets a script continue that waits for this file. */
  release(name: string): void {
    writeFileSync(this.file(name), '');
  }

  async call<T = Record<string, unknown>>(method: string, route: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.url}${route}`, {
      method,
      headers: { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${await response.text()}`);
    return (response.status === 204 ? undefined : await response.json()) as T;
  }

  /** Creates a conversation whose agent plays a script. */
  async conversation(script: string, title = script, more: Record<string, unknown> = {}): Promise<string> {
    return (await this.call<{ id: string }>('POST', '/v1/conversations', { title, model: script, ...more })).id;
  }

  async send(conversation: string, text: string): Promise<{ turnId: string }> {
    return this.call('POST', `/v1/conversations/${conversation}/messages`, { text });
  }

  /** Sends a message and waits for the end of its turn. */
  async ask(conversation: string, text: string): Promise<{ state: string }> {
    const { turnId } = await this.send(conversation, text);
    for (;;) {
      const turn = await this.call<{ state: string }>('GET', `/v1/turns/${turnId}?wait=20`);
      if (turn.state !== 'queued' && turn.state !== 'running') return turn;
    }
  }

  private writeFiles(): void {
    for (const name of ['home', 'work', 'scripts']) mkdirSync(this.file(name), { recursive: true });
    for (const [name, turns] of Object.entries(SCENARIOS(this.directory))) {
      writeFileSync(this.file(`scripts/${name}.json`), JSON.stringify({ turns: turns.map((steps) => ({ steps })) }));
    }
    for (const [name, steps] of Object.entries(STEPS(this.directory))) {
      writeFileSync(this.file(`scripts/${name}.steps`), JSON.stringify(steps));
    }
    writeFileSync(this.file('agent'), agentProgram(TEAMSTER, this.file('scripts')), { mode: 0o755 });
    writeFileSync(this.file('config.toml'), [
      '[serve.retries]', 'first_delay = "200ms"', '[serve.limits]', 'requests_per_second = 100000', 'concurrent_requests = 1000', '',
    ].join('\n'));
  }
}

/** Returns the program that stands for the agent's CLI. */
function agentProgram(teamster: string, scripts: string): string {
  return `#!/bin/sh
name=echo
previous=
for argument in "$@"; do
  [ "$previous" = --model ] && name=$argument
  case $argument in --model=*) name=\${argument#--model=} ;; esac
  previous=$argument
done
[ -e '${scripts}'/"$name".steps ] && exec '${teamster}' fake --script '${scripts}'/"$name".steps -- "$@"
[ -e '${scripts}'/"$name".json ] || name=echo
exec '${teamster}' fake --agent claude --script '${scripts}'/"$name".json -- "$@"
`;
}
