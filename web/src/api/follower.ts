// Follows the events of one conversation: connects, reads, detects a dead connection, and connects again.
//
// A read on a dead connection never fails: after sleep it hangs. So each byte, also of a comment, resets a watchdog.

import { createParser } from 'eventsource-parser';

import type { LogEvent } from '../state/events';
import { backoff } from './backoff';
import { Problem, asProblem, problemOf, reportUnauthorized } from './http';

/** The connection as the page shows it. */
export type Connection =
  | { state: 'connecting' }
  | { state: 'live' }
  | { state: 'waiting'; attempt: number; retryAt: number; reason: string }
  | { state: 'closed' };

export interface FollowerOptions {
  url: (after: number) => string;
  /** The number of the last event that the caller has. */
  last: () => number;
  onEvents: (events: LogEvent[]) => void;
  onConnection: (connection: Connection) => void;
  /** The connection is open: the caller can check what no event reports. */
  onOpen?: () => void;
  /** The log cannot be followed from `last`. */
  onLost: (problem: Problem) => void;
  now?: () => number;
  random?: () => number;
}

/** How long a connection may be silent. The gateway sends a comment every 10 s. */
export const SILENCE_MS = 45_000;

/** A connection that was silent for this long is replaced when the page is shown again. */
export const STALE_MS = 20_000;

/** Statuses after which no further attempt can succeed. */
const FINAL = new Set([400, 401, 403, 404, 409, 410]);

export class Follower {
  /** Grows with each connection: a late callback of an old one has no effect. */
  private generation = 0;
  private controller: AbortController | undefined;
  private watchdog: ReturnType<typeof setTimeout> | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private lastByte = 0;
  private attempt = 0;

  constructor(private readonly options: FollowerOptions) {}

  /** Starts, or connects at once if a wait is running. */
  open(): void {
    this.attempt = 0;
    this.connect();
  }

  close(): void {
    this.stop();
    this.options.onConnection({ state: 'closed' });
  }

  get isClosed(): boolean {
    return this.controller === undefined && this.retry === undefined;
  }

  /** Connects again if the connection has been silent, or is not there. */
  refresh(): void {
    if (this.isClosed) return;
    if (this.retry !== undefined || this.now() - this.lastByte > STALE_MS) this.open();
  }

  /** Drops the connection and opens another one after the last event that the caller has. */
  reopen(): void {
    if (!this.isClosed) this.connect();
  }

  private stop(): void {
    this.generation += 1;
    this.controller?.abort();
    this.controller = undefined;
    clearTimeout(this.watchdog);
    clearTimeout(this.retry);
    this.retry = undefined;
  }

  private connect(): void {
    this.stop();
    const controller = new AbortController();
    this.controller = controller;
    const { generation } = this;
    if (this.attempt === 0) this.options.onConnection({ state: 'connecting' });
    this.feedWatchdog();
    void this.read(controller.signal, generation).then(
      () => this.again(generation, new Problem(0, 'ENDED', 'The connection ended.')),
      (error: unknown) => this.again(generation, asProblem(error)),
    );
  }

  private async read(signal: AbortSignal, generation: number): Promise<void> {
    const response = await this.request(signal);
    if (generation !== this.generation) return;
    const { body } = response;
    if (body === null) throw new Problem(0, 'NO_BODY', 'The gateway sent no events.');
    let ready: LogEvent[] = [];
    let end: Problem | undefined;
    const parser = createParser({
      onEvent: (message) => {
        if (message.event === 'stream_end') end = endOf(message.data);
        else ready.push(JSON.parse(message.data) as LogEvent);
      },
    });
    this.opened();
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (generation !== this.generation) return;
      if (done) break;
      this.feedWatchdog();
      parser.feed(value);
      if (ready.length > 0) {
        const events = ready;
        ready = [];
        this.attempt = 0;
        this.options.onEvents(events);
      }
      if (generation !== this.generation) return;
    }
    if (end !== undefined) throw end;
  }

  private async request(signal: AbortSignal): Promise<Response> {
    let response: Response;
    try {
      const url = this.options.url(this.options.last());
      response = await fetch(url, {
        signal, credentials: 'same-origin', cache: 'no-store', headers: { Accept: 'text/event-stream' },
      });
    } catch {
      throw new Problem(0, 'UNREACHABLE', 'The gateway cannot be reached.');
    }
    if (!response.ok) throw await problemOf(response);
    return response;
  }

  private opened(): void {
    this.options.onConnection({ state: 'live' });
    this.options.onOpen?.();
  }

  private again(generation: number, problem: Problem): void {
    if (generation !== this.generation) return;
    this.stop();
    if (problem.status === 401) reportUnauthorized();
    if (FINAL.has(problem.status)) {
      this.options.onConnection({ state: 'closed' });
      this.options.onLost(problem);
      return;
    }
    this.attempt += 1;
    const random = this.options.random ?? Math.random;
    const wait = Math.max(backoff(this.attempt, random()), (problem.retryAfter ?? 0) * 1_000);
    const retryAt = this.now() + wait;
    this.options.onConnection({ state: 'waiting', attempt: this.attempt, retryAt, reason: problem.message });
    this.retry = setTimeout(() => {
      this.retry = undefined;
      this.connect();
    }, wait);
  }

  private feedWatchdog(): void {
    this.lastByte = this.now();
    clearTimeout(this.watchdog);
    const { generation } = this;
    this.watchdog = setTimeout(() => {
      this.again(generation, new Problem(0, 'SILENT', 'The connection was silent for 45 seconds.'));
    }, SILENCE_MS);
  }

  private now(): number {
    return (this.options.now ?? Date.now)();
  }
}

function endOf(data: string): Problem {
  let fields: { code?: string; reason?: string } = {};
  try {
    fields = JSON.parse(data) as { code?: string; reason?: string };
  } catch {
    // The end itself is what counts.
  }
  const statuses: Record<string, number> = { EVENTS_PRUNED: 410, NOT_FOUND: 404, UNAUTHORIZED: 401 };
  const code = fields.code ?? 'ENDED';
  return new Problem(statuses[code] ?? 0, code, fields.reason ?? 'The stream ended.');
}
