import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { backoff } from '../../src/api/backoff';
import { type Connection, Follower, SILENCE_MS, STALE_MS } from '../../src/api/follower';
import type { Problem } from '../../src/api/http';
import type { LogEvent } from '../../src/state/events';

interface Stream {
  url: string;
  send: (text: string) => void;
  end: () => void;
  isAborted: () => boolean;
}

const frame = (seq: number) => `id: ${seq}\nevent: text\ndata: ${JSON.stringify({ seq, type: 'text', at: '' })}\n\n`;

/** Lets pending reads continue. */
const settle = async () => {
  for (let index = 0; index < 20; index += 1) await Promise.resolve();
  await vi.advanceTimersByTimeAsync(0);
};

describe('the follower', () => {
  let streams: Stream[];
  let respond: () => Response | undefined;
  let events: LogEvent[];
  let connections: Connection[];
  let lost: Problem[];
  let follower: Follower;

  beforeEach(() => {
    vi.useFakeTimers();
    streams = [];
    events = [];
    connections = [];
    lost = [];
    respond = () => undefined;
    vi.stubGlobal('fetch', async (url: string, init: { signal: AbortSignal }) => {
      const response = respond();
      if (response !== undefined) return response;
      let controller!: ReadableStreamDefaultController<Uint8Array>;
      const body = new ReadableStream<Uint8Array>({ start: (started) => { controller = started; } });
      streams.push({
        url,
        send: (text) => controller.enqueue(new TextEncoder().encode(text)),
        end: () => controller.close(),
        isAborted: () => init.signal.aborted,
      });
      return new Response(body);
    });
    follower = new Follower({
      url: (after) => `/events?after=${after}`,
      last: () => events.at(-1)?.seq ?? 0,
      onEvents: (found) => events.push(...found),
      onConnection: (connection) => connections.push(connection),
      onLost: (problem) => lost.push(problem),
      random: () => 0,
    });
  });

  afterEach(() => {
    follower.close();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it('continues after the last event when a connection ends', async () => {
    follower.open();
    await settle();
    streams[0]?.send(frame(1) + frame(2));
    await settle();
    streams[0]?.end();
    await settle();
    expect(connections.at(-1)).toMatchObject({ state: 'waiting', attempt: 1 });
    await vi.advanceTimersByTimeAsync(500);
    expect(streams.map((stream) => stream.url)).toEqual(['/events?after=0', '/events?after=2']);
    expect(connections.at(-1)).toEqual({ state: 'live' });
  });

  it('replaces a connection that is silent for 45 s, although no read fails', async () => {
    follower.open();
    await settle();
    streams[0]?.send(frame(1));
    await settle();
    await vi.advanceTimersByTimeAsync(SILENCE_MS - 1_000);
    expect(streams).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(streams[0]?.isAborted()).toBe(true);
    expect(streams).toHaveLength(2);
    expect(streams[1]?.url).toBe('/events?after=1');
  });

  it('takes a comment as a sign of life', async () => {
    follower.open();
    await settle();
    for (let index = 0; index < 6; index += 1) {
      await vi.advanceTimersByTimeAsync(10_000);
      streams[0]?.send(': ping\n\n');
      await settle();
    }
    await vi.advanceTimersByTimeAsync(10_000);
    expect(streams).toHaveLength(1);
  });

  it('connects again when the page is shown after a silence of 20 s', async () => {
    follower.open();
    await settle();
    streams[0]?.send(frame(1));
    await settle();
    follower.refresh();
    expect(streams).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(STALE_MS + 1_000);
    follower.refresh();
    await settle();
    expect(streams).toHaveLength(2);
  });

  it('ignores what an old connection still delivers', async () => {
    follower.open();
    await settle();
    follower.reopen();
    await settle();
    streams[0]?.send(frame(1));
    streams[1]?.send(frame(1) + frame(2));
    await settle();
    expect(events.map((event) => event.seq)).toEqual([1, 2]);
  });

  it('waits longer after each failure, and at once less when a person asks', async () => {
    respond = () => { throw new TypeError('network'); };
    follower.open();
    await settle();
    await vi.advanceTimersByTimeAsync(20_000);
    const waits = connections.filter((connection) => connection.state === 'waiting').map((connection) => connection.attempt);
    expect(waits.slice(0, 5)).toEqual([1, 2, 3, 4, 5]);
    respond = () => undefined;
    follower.open();
    await settle();
    expect(connections.at(-1)).toEqual({ state: 'live' });
  });

  it('stops where no attempt can succeed, and reports why', async () => {
    for (const status of [404, 409, 410]) {
      respond = () => Response.json({ code: 'X', detail: 'gone' }, { status });
      follower.open();
      await settle();
      expect(lost.at(-1)).toMatchObject({ status, code: 'X', message: 'gone' });
      expect(follower.isClosed).toBe(true);
    }
  });

  it('waits as long as the gateway says', async () => {
    respond = () => Response.json({ code: 'TOO_MANY_SUBSCRIBERS' }, { status: 503, headers: { 'Retry-After': '10' } });
    follower.open();
    await settle();
    const last = connections.at(-1);
    expect(last?.state === 'waiting' && last.retryAt - Date.now()).toBeGreaterThan(9_000);
  });

  it('reads the reason of the end of a stream', async () => {
    follower.open();
    await settle();
    streams[0]?.send(`event: stream_end\ndata: {"type":"stream_end","code":"EVENTS_PRUNED","reason":"deleted"}\n\n`);
    streams[0]?.end();
    await settle();
    expect(lost.at(-1)).toMatchObject({ status: 410, code: 'EVENTS_PRUNED' });
  });
});

it('the wait grows to 15 s, with jitter', () => {
  expect([1, 2, 3, 4, 5, 6, 20].map((attempt) => backoff(attempt, 1))).toEqual([500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
  expect(backoff(3, 0)).toBe(1_000);
});
