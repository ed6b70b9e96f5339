import { describe, expect, it } from 'vitest';

import { diffLines, parsePatch } from '../../src/tools/diff';
import { editsOf } from '../../src/tools/edits';
import { HEAD_LINES, MAX_LINE, TAIL_LINES, partsOf, spansOf, splitLines } from '../../src/tools/output';
import { durationText, summaryOf } from '../../src/tools/summary';
import { random } from './log';

const call = (toolKind: string, input: unknown, name = 'Tool') => ({ name, toolKind, input });

describe('a difference', () => {
  it('applied to the old text gives the new text', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const next = random(seed);
      const lines = (count: number) => [...Array(count)].map(() => 'abcdef'[Math.floor(next() * 6)] as string);
      const before = lines(2);
      const after = lines(2);
      // Without equal lines far from a change there are no gaps.
      const result = diffLines(before.join('\n'), after.join('\n'));
      const old = result.filter((line) => line.kind !== 'added').map((line) => line.text);
      const now = result.filter((line) => line.kind !== 'removed').map((line) => line.text);
      const isSame = before.join() === after.join();
      expect([old, now], `seed ${seed}`).toEqual(isSame ? [[], []] : [before, after]);
    }
  });

  it('of longer texts is minimal and leaves out equal lines', () => {
    const before = [...Array(100).keys()].map((line) => `line ${line}`);
    const after = before.with(50, 'changed');
    const result = diffLines(before.join('\n'), after.join('\n'));
    expect(result.filter((line) => line.kind === 'added').map((line) => line.text)).toEqual(['changed']);
    expect(result.filter((line) => line.kind === 'removed').map((line) => line.text)).toEqual(['line 50']);
    expect(result).toHaveLength(8);
  });

  it('of texts that have nothing in common replaces all lines after a bounded search', () => {
    const text = (prefix: string) => [...Array(5_000).keys()].map((line) => `${prefix}${line}`).join('\n');
    expect(diffLines(text('a'), text('b'))).toHaveLength(10_000);
  });

  it('is read from patches in both forms', () => {
    const unified = parsePatch('--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n');
    expect(unified).toEqual([{ path: 'x.rs', lines: [{ kind: 'same', text: 'same' }, { kind: 'removed', text: 'old' }, { kind: 'added', text: 'new' }] }]);
    expect(parsePatch('*** Begin Patch\n*** Add File: y\n+one\n*** End Patch')[0]).toEqual({ path: 'y', lines: [{ kind: 'added', text: 'one' }] });
  });
});

describe('file edits of each agent', () => {
  it('are found in its arguments', () => {
    expect(editsOf(call('edit', { file_path: '/a', old_string: 'x', new_string: 'y' }))[0]).toMatchObject({ path: '/a', added: 1, removed: 1 });
    expect(editsOf(call('edit', { filePath: '/b', oldString: 'x\nz', newString: 'x' }))[0]).toMatchObject({ path: '/b', added: 0, removed: 1 });
    expect(editsOf(call('edit', { file_path: '/c', content: '1\n2\n' }))[0]).toMatchObject({ path: '/c', added: 2, removed: 0 });
    expect(editsOf(call('edit', { file_path: '/d', edits: [{ old_string: 'a', new_string: 'b' }, { old_string: 'c', new_string: 'd' }] }))[0]).toMatchObject({ added: 2, removed: 2 });
    expect(editsOf(call('edit', { changes: [{ path: '/e', kind: 'add' }] }))[0]).toMatchObject({ path: '/e', isOpaque: true });
    expect(editsOf(call('edit', { patchText: '*** Update File: f\n-a\n+b' }))[0]).toMatchObject({ path: 'f', added: 1, removed: 1 });
    expect(editsOf(call('edit', 'not JSON'))).toEqual([]);
    expect(editsOf(call('edit', null))).toEqual([]);
  });
});

describe('a tool call in one line', () => {
  it('names what it is about', () => {
    expect(summaryOf(call('execute', { command: 'cargo test\n--all' }, 'Bash'))).toMatchObject({ verb: 'Ran', subject: 'cargo test --all' });
    expect(summaryOf(call('execute', { command: ['bash', '-c', 'ls'] }, 'shell')).subject).toBe('bash -c ls');
    expect(summaryOf(call('edit', { changes: [{ path: 'a' }, { path: 'b' }] })).subject).toBe('a, b');
    expect(summaryOf({ ...call('mcp', { q: 'x' }, 'find'), server: 'docs' })).toMatchObject({ verb: 'docs / find', subject: 'x' });
    expect(summaryOf(call('other', 'x'.repeat(5_000))).subject.length).toBeLessThan(310);
    expect(summaryOf(call('read', null, 'Read')).subject).toBe('Read');
  });

  it('has a short duration', () => {
    expect([0, 340, 1_234, 12_400, 200_000, 3_700_000].map(durationText)).toEqual(['0 ms', '340 ms', '1.2 s', '12 s', '3 min 20 s', '1 h 1 min']);
    expect(durationText(Number.NaN)).toBe('');
  });
});

describe('output', () => {
  it('shows its beginning and its end', () => {
    const lines = [...Array(10_000).keys()].map(String);
    const { head, hidden, tail } = partsOf(lines);
    expect([head.length, hidden, tail.length]).toEqual([HEAD_LINES, 10_000 - HEAD_LINES - TAIL_LINES, TAIL_LINES]);
    expect(partsOf(lines.slice(0, 260)).hidden).toBe(0);
    expect(splitLines('a\r\nb\n')).toEqual(['a', 'b']);
  });

  it('has colors as classes and no control codes', () => {
    expect(spansOf('\u001b[1;31mred\u001b[0m plain \u001b[32mgreen')).toEqual([
      { text: 'red', classes: 'ansi-red ansi-bold' }, { text: ' plain ', classes: '' }, { text: 'green', classes: 'ansi-green' },
    ]);
    expect(spansOf('\u001b]8;;http://x\u0007link\u001b]8;;\u0007\u0007 \u001b[2K\u001b[38;5;200mx').map((span) => span.text).join('')).toBe('link x');
    expect(spansOf('10%\r50%\r100%').map((span) => span.text).join('')).toBe('100%');
  });

  it('cuts a long line', () => {
    const spans = spansOf('x'.repeat(1_000_000));
    expect(spans[0]?.text).toHaveLength(MAX_LINE);
    expect(spans[1]?.text).toBe(` … ${1_000_000 - MAX_LINE} more characters`);
  });
});
