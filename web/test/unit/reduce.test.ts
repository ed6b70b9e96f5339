import { describe, expect, it } from 'vitest';

import { type TextBlock, type ToolBlock, type Turn, emptyLog, logAfter, openRequests, turnsOf } from '../../src/state/model';
import { reduce, reduceAll } from '../../src/state/reduce';
import { event, random, randomLog } from './log';

const SEEDS = [...Array(150).keys()].map((seed) => seed + 1);

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(freeze);
  }
  return value;
}

describe('a log gives one state', () => {
  it('however it is split into batches', () => {
    for (const seed of SEEDS) {
      const log = freeze(randomLog(seed, 4));
      const whole = reduceAll(emptyLog, log).state;
      const next = random(seed * 7);
      let state = emptyLog;
      let at = 0;
      while (at < log.length) {
        const size = 1 + Math.floor(next() * 9);
        state = freeze(reduceAll(state, log.slice(at, at + size)).state);
        at += size;
      }
      expect(state, `seed ${seed}`).toEqual(whole);
      expect(log.reduce(reduce, emptyLog), `seed ${seed}`).toEqual(whole);
    }
  });

  it('however often it is repeated by reconnections', () => {
    for (const seed of SEEDS) {
      const log = randomLog(seed, 4);
      const whole = reduceAll(emptyLog, log).state;
      const next = random(seed * 13);
      let state = emptyLog;
      while (state.last < log.length) {
        // A reconnection starts at the last event, or before it.
        const from = Math.max(0, state.last - Math.floor(next() * 6));
        state = reduceAll(state, log.slice(from, from + 1 + Math.floor(next() * 12))).state;
      }
      expect(state, `seed ${seed}`).toEqual(whole);
    }
  });

  it('and a gap stops it, so that the page connects again', () => {
    const log = randomLog(3, 3);
    const { state, gap } = reduceAll(emptyLog, [...log.slice(0, 5), ...log.slice(7)]);
    expect([state.last, gap]).toEqual([5, true]);
    const again = reduceAll(state, log.slice(state.last));
    expect([again.gap, again.state]).toEqual([false, reduceAll(emptyLog, log).state]);
  });

  it('that starts in the middle of a turn', () => {
    const log = randomLog(5, 3);
    const { state } = reduceAll(logAfter(4), log.slice(4));
    expect(state.first).toBe(5);
    expect(turnsOf(state)[0]?.isPartial).toBe(true);
    expect(turnsOf(state)[1]?.isPartial).toBe(false);
  });
});

describe('unchanged parts keep their identity', () => {
  it('so that they are not rendered again', () => {
    const log = randomLog(9, 3);
    const before = reduceAll(emptyLog, log).state;
    const last = log.length + 1;
    const state = reduceAll(before, [event(last, 'turn_queued', { text: 'new' }, 'new'), event(last + 1, 'text', { text: 'a', messageId: 'm' }, 'new')]).state;
    before.items.forEach((item, index) => expect(state.items[index]).toBe(item));
    const after = reduce(state, event(last + 2, 'text', { text: 'b', messageId: 'm' }, 'new'));
    const turn = (from: typeof state) => from.items.at(-1) as Turn;
    expect(turn(after)).not.toBe(turn(state));
    expect((turn(after).blocks[0] as TextBlock).text).toBe('ab');
    expect((turn(state).blocks[0] as TextBlock).text).toBe('a');
  });

  it('and events that are known already change nothing', () => {
    const log = randomLog(11, 2);
    const state = reduceAll(emptyLog, log).state;
    expect(reduceAll(state, log).state).toBe(state);
  });
});

describe('a turn', () => {
  const start = [event(1, 'turn_queued', { messageId: 'm', author: 'ada', text: 'hello' }), event(2, 'turn_started', { attempt: 1 })];
  const turnAfter = (...events: ReturnType<typeof event>[]) => turnsOf(reduceAll(emptyLog, [...start, ...events]).state)[0] as Turn;

  it('shows a retracted message once, as it was sent again', () => {
    const turn = turnAfter(
      event(3, 'text', { text: 'half an ans', messageId: 'a' }),
      event(4, 'retract', { messageId: 'a' }),
      event(5, 'text', { text: 'the answer', messageId: 'a' }),
    );
    expect(turn.blocks.map((block) => (block as TextBlock).text)).toEqual(['the answer']);
  });

  it('has the blocks of a subagent inside its call', () => {
    const turn = turnAfter(
      event(3, 'tool_use', { toolId: 'task', toolName: 'Task', kind: 'agent', input: {} }),
      event(4, 'tool_use', { toolId: 'inner', toolName: 'Bash', kind: 'execute', input: {}, parentToolId: 'task' }),
      event(5, 'tool_result', { toolId: 'inner', output: 'ok', parentToolId: 'task' }),
      event(6, 'text', { text: 'found', messageId: 's', parentToolId: 'task' }),
    );
    const task = turn.blocks[0] as ToolBlock;
    expect(turn.blocks).toHaveLength(1);
    expect(task.children.map((block) => block.kind)).toEqual(['tool', 'text']);
    expect((task.children[0] as ToolBlock).result?.output).toBe('ok');
  });

  it('that ends closes its calls and its open requests', () => {
    const events = [
      event(3, 'tool_use', { toolId: 'x', toolName: 'Bash', kind: 'execute', input: {} }),
      event(4, 'permission_request', { requestId: 'r', toolName: 'Bash', input: {}, options: [], toolId: 'x' }),
    ];
    const { state } = reduceAll(emptyLog, [...start, ...events]);
    expect(openRequests(state)).toHaveLength(1);
    const ended = reduce(state, event(5, 'turn_finished', { state: 'aborted' }));
    expect(openRequests(ended)).toHaveLength(0);
    expect(((ended.items[0] as Turn).blocks[0] as ToolBlock).isCut).toBe(true);
  });

  it('takes the first answer of a request', () => {
    const { state } = reduceAll(emptyLog, [
      ...start,
      event(3, 'permission_request', { requestId: 'r', toolName: 'Bash', input: {}, options: [] }),
      event(4, 'permission_answered', { requestId: 'r', decision: 'deny', by: 'http:ada' }),
      event(5, 'permission_answered', { requestId: 'r', decision: 'turn_ended' }),
    ]);
    expect(state.requests['r']?.answer).toMatchObject({ decision: 'deny', by: 'http:ada' });
  });

  it('shows an event of an unknown type as a row', () => {
    const turn = turnAfter(event(3, 'a_later_type', { value: 1 }));
    expect(turn.blocks[0]).toMatchObject({ kind: 'notice', title: 'a_later_type', text: '{"value":1}' });
  });

  it('that fails and is retried by a person runs again', () => {
    const turn = turnAfter(
      event(3, 'turn_finished', { state: 'failed', errorCode: 'AUTH', error: 'log in' }),
      event(4, 'turn_queued', { messageId: 'm', author: 'ada', text: 'hello' }),
      event(5, 'turn_started', { attempt: 2 }),
    );
    expect(turn).toMatchObject({ state: 'running', attempt: 2, error: undefined, endedAt: undefined });
  });

  it('survives fields of any type', () => {
    const odd = [null, 1, [], {}, 'x', true];
    let seq = 2;
    const events = odd.flatMap((value) =>
      ['text', 'tool_use', 'tool_result', 'plan', 'permission_request', 'question', 'done', 'error', 'turn_finished', 'init'].map((type) => {
        seq += 1;
        return event(seq, type, { text: value, toolId: value, entries: value, options: value, questions: value, result: value, input: value });
      }),
    );
    expect(() => turnAfter(...events)).not.toThrow();
  });
});

it('the time per event does not grow with the log', () => {
  const time = (log: ReturnType<typeof randomLog>) => {
    const times = [1, 2, 3].map(() => {
      const started = performance.now();
      expect(reduceAll(emptyLog, log).state.last).toBe(log.length);
      return (performance.now() - started) / log.length;
    });
    return Math.min(...times);
  };
  const [short, long] = [randomLog(1, 400), randomLog(1, 6_500)];
  expect(long.length).toBeGreaterThan(90_000);
  expect(time(long) / time(short)).toBeLessThan(6);
});
