// Reads a part of a log that ends before the part that is loaded.

import { createParser } from 'eventsource-parser';

import type { LogEvent } from '../state/events';
import { problemOf } from './http';

/** Returns the events after `after`, up to and including `end`. */
export async function readRange(url: string, end: number, signal: AbortSignal): Promise<LogEvent[]> {
  const controller = new AbortController();
  const response = await fetch(url, {
    signal: AbortSignal.any([signal, controller.signal, AbortSignal.timeout(60_000)]),
    credentials: 'same-origin',
    cache: 'no-store',
    headers: { Accept: 'text/event-stream' },
  });
  if (!response.ok) throw await problemOf(response);
  const events: LogEvent[] = [];
  let isComplete = false;
  const parser = createParser({
    onEvent: (message) => {
      if (message.event === 'stream_end') return;
      const event = JSON.parse(message.data) as LogEvent;
      if (event.seq <= end) events.push(event);
      isComplete ||= event.seq >= end;
    },
  });
  const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader();
  while (!isComplete) {
    const { done, value } = await reader.read();
    if (done) break;
    parser.feed(value);
  }
  controller.abort();
  return events;
}
