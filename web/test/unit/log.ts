// Random logs for tests, with events in any order that a gateway can write.

import type { LogEvent } from '../../src/state/events';

/** A generator of numbers that depends on a seed only. */
export function random(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export function event(seq: number, type: string, fields: Record<string, unknown> = {}, turnId: string | undefined = 't1'): LogEvent {
  return { type, seq, turnId, at: new Date(1_700_000_000_000 + seq * 100).toISOString(), ...fields };
}

const WORDS = ['alpha ', 'beta\n\n', '**gamma** ', '`code` ', '- item\n', '```js\n', '```\n', '| a | b |\n', 'עברית ', '🙂 '];

/** Returns a log of several turns. */
export function randomLog(seed: number, turns: number): LogEvent[] {
  const next = random(seed);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(next() * values.length)] as T;
  const log: LogEvent[] = [];
  const add = (type: string, fields: Record<string, unknown>, turnId?: string) => {
    log.push({ ...event(log.length + 1, type, fields, turnId), turnId });
  };
  for (let turn = 0; turn < turns; turn += 1) {
    const id = `t${turn}`;
    add('turn_queued', { messageId: `m${turn}`, author: 'ada', text: pick(WORDS) }, id);
    add('turn_started', { attempt: 1, agent: 'claude', worker: 'w' }, id);
    const tools: string[] = [];
    for (let step = 0; step < 12; step += 1) addStep(add, id, next, pick, tools, `${turn}-${step}`);
    if (next() < 0.2) add('turn_retrying', { attempt: 1, delayMs: 50, code: 'OVERLOADED' }, id);
    add('done', { result: { text: 'x', usage: { inputTokens: 1, outputTokens: 2 }, totalCostUsd: 0.1, durationMs: 5 } }, id);
    add('turn_finished', { state: pick(['done', 'failed', 'aborted']), errorCode: 'PROVIDER', error: 'no' }, id);
    if (next() < 0.3) add('delivery_failed', { deliveryId: 'd', reason: 'gone' });
  }
  return log;
}

function addStep(
  add: (type: string, fields: Record<string, unknown>, turnId?: string) => void,
  id: string,
  next: () => number,
  pick: <T>(values: readonly T[]) => T,
  tools: string[],
  name: string,
): void {
  const parentToolId = tools.length > 0 && next() < 0.3 ? pick(tools) : undefined;
  const kind = pick(['text', 'text', 'text', 'thinking', 'tool', 'result', 'plan', 'request', 'retract', 'unknown']);
  if (kind === 'text' || kind === 'thinking') {
    add(kind, { text: pick(WORDS), messageId: `msg${Math.floor(next() * 3)}`, parentToolId }, id);
  } else if (kind === 'tool') {
    tools.push(`tool${name}`);
    add('tool_use', { toolId: `tool${name}`, toolName: 'Bash', kind: 'execute', input: { command: 'ls' }, parentToolId }, id);
    add('tool_output', { toolId: `tool${name}`, text: 'line\n' }, id);
  } else if (kind === 'result' && tools.length > 0) {
    add('tool_result', { toolId: pick(tools), output: 'ok', isError: next() < 0.3 }, id);
  } else if (kind === 'plan') {
    add('plan', { entries: [{ content: 'one', status: pick(['pending', 'completed']) }] }, id);
  } else if (kind === 'request') {
    add('permission_request', { requestId: `r${name}`, toolName: 'Bash', input: {}, options: [], toolId: tools.at(-1) }, id);
    if (next() < 0.7) add('permission_answered', { requestId: `r${name}`, decision: pick(['allow', 'deny']), by: 'http:ada' }, id);
  } else if (kind === 'retract') {
    add('retract', { messageId: `msg${Math.floor(next() * 3)}` }, id);
  } else {
    add('a_later_type', { value: name }, id);
  }
}
