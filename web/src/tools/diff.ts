// The difference of two texts in lines, by the algorithm of Myers with a bound on its work.

export interface DiffLine {
  kind: 'same' | 'added' | 'removed' | 'gap';
  text: string;
}

/** The number of differences after which the rest is shown as replaced. */
const MAX_DIFFERENCES = 1_000;

/** The number of equal lines that are shown around a change. */
const CONTEXT = 3;

export function diffLines(before: string, after: string): DiffLine[] {
  const one = split(before);
  const other = split(after);
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < one.length - start && end < other.length - start && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  const middle = myers(one.slice(start, one.length - end), other.slice(start, other.length - end));
  const same = (text: string): DiffLine => ({ kind: 'same', text });
  const lines = [...one.slice(0, start).map(same), ...middle, ...one.slice(one.length - end).map(same)];
  return withContext(lines);
}

function split(text: string): string[] {
  if (text === '') return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function myers(one: string[], other: string[]): DiffLine[] {
  const replaced = (): DiffLine[] => [
    ...one.map((text): DiffLine => ({ kind: 'removed', text })),
    ...other.map((text): DiffLine => ({ kind: 'added', text })),
  ];
  if (one.length === 0 || other.length === 0) return replaced();
  const traces = shortestPath(one, other);
  return traces === undefined ? replaced() : walkBack(one, other, traces);
}

/** Returns the furthest positions before each step, by diagonal, up to the step that reaches the end. */
function shortestPath(one: string[], other: string[]): Int32Array[] | undefined {
  const most = Math.min(one.length + other.length, MAX_DIFFERENCES);
  const middle = most + 1;
  const furthest = new Int32Array(2 * most + 3).fill(-1);
  furthest[middle + 1] = 0;
  const traces: Int32Array[] = [];
  for (let step = 0; step <= most; step += 1) {
    traces.push(furthest.slice(middle - step - 1, middle + step + 2));
    for (let diagonal = -step; diagonal <= step; diagonal += 2) {
      const down = furthest[middle + diagonal + 1] as number;
      const right = furthest[middle + diagonal - 1] as number;
      let x = diagonal === -step || (diagonal !== step && right < down) ? down : right + 1;
      while (x < one.length && x - diagonal < other.length && one[x] === other[x - diagonal]) x += 1;
      furthest[middle + diagonal] = x;
      if (x >= one.length && x - diagonal >= other.length) return traces;
    }
  }
  return undefined;
}

function walkBack(one: string[], other: string[], traces: Int32Array[]): DiffLine[] {
  const lines: DiffLine[] = [];
  let x = one.length;
  let y = other.length;
  for (let step = traces.length - 1; step >= 0; step -= 1) {
    const furthest = traces[step] as Int32Array;
    const diagonal = x - y;
    const down = furthest[step + 1 + diagonal + 1] ?? -1;
    const right = furthest[step + 1 + diagonal - 1] ?? -1;
    const isDown = diagonal === -step || (diagonal !== step && right < down);
    const fromX = isDown ? down : right;
    const fromY = fromX - (isDown ? diagonal + 1 : diagonal - 1);
    while (x > fromX && y > fromY && x > 0 && y > 0 && one[x - 1] === other[y - 1]) {
      lines.push({ kind: 'same', text: one[x - 1] as string });
      x -= 1;
      y -= 1;
    }
    if (step === 0) break;
    if (isDown) lines.push({ kind: 'added', text: other[y - 1] as string });
    else lines.push({ kind: 'removed', text: one[x - 1] as string });
    x = fromX;
    y = fromY;
  }
  return lines.reverse();
}

/** Replaces long runs of equal lines by gaps. */
function withContext(lines: DiffLine[]): DiffLine[] {
  const isNear = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.kind === 'same') return;
    for (let near = Math.max(0, index - CONTEXT); near <= Math.min(lines.length - 1, index + CONTEXT); near += 1) {
      isNear[near] = 1;
    }
  });
  const result: DiffLine[] = [];
  lines.forEach((line, index) => {
    if (isNear[index] === 1) result.push(line);
    else if (result.length > 0 && result.at(-1)?.kind !== 'gap') result.push({ kind: 'gap', text: '' });
  });
  if (result.at(-1)?.kind === 'gap') result.pop();
  return result;
}

/** Reads a patch: unified, or in the form of `apply_patch`. */
export function parsePatch(patch: string): { path: string; lines: DiffLine[] }[] {
  const files: { path: string; lines: DiffLine[] }[] = [];
  let file: { path: string; lines: DiffLine[] } | undefined;
  const open = (path: string) => {
    file = { path, lines: [] };
    files.push(file);
  };
  for (const line of split(patch)) {
    const header = /^(?:\+\+\+ (?:b\/)?(.+)|\*\*\* (?:Update|Add|Delete) File: (.+))$/.exec(line);
    if (header !== null) {
      open((header[1] ?? header[2] ?? '').trim());
    } else if (/^(---|diff |index |\*\*\* (Begin|End))/.test(line)) {
      continue;
    } else {
      if (file === undefined) open('');
      const lines = (file as unknown as { lines: DiffLine[] }).lines;
      if (line.startsWith('@@')) {
        if (lines.length > 0) lines.push({ kind: 'gap', text: '' });
      } else if (line.startsWith('+')) lines.push({ kind: 'added', text: line.slice(1) });
      else if (line.startsWith('-')) lines.push({ kind: 'removed', text: line.slice(1) });
      else if (!line.startsWith('\\')) lines.push({ kind: 'same', text: line.replace(/^ /, '') });
    }
  }
  return files;
}
