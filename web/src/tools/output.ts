// The output of a tool: its colors, and the part of it that is shown.

/** A piece of a line with its classes. */
export interface Span {
  text: string;
  classes: string;
}

/** Lines that are shown at first: from the beginning and from the end. */
export const HEAD_LINES = 200;
export const TAIL_LINES = 50;

/** Longer lines are cut. */
export const MAX_LINE = 2_000;

export interface OutputParts {
  head: string[];
  hidden: number;
  tail: string[];
}

export function splitLines(output: string): string[] {
  const lines = output.replace(/\r\n/g, '\n').split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/** Returns the lines that are shown at first. A few more than that are shown as well. */
export function partsOf(lines: string[]): OutputParts {
  if (lines.length <= HEAD_LINES + TAIL_LINES + 20) return { head: lines, hidden: 0, tail: [] };
  const hidden = lines.length - HEAD_LINES - TAIL_LINES;
  return { head: lines.slice(0, HEAD_LINES), hidden, tail: lines.slice(-TAIL_LINES) };
}

const COLORS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

// eslint-disable-next-line no-control-regex
const CONTROL = /\u001b\[([0-9;:]*)([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]|[\u0000-\u0008\u000b-\u001a\u007f]/g;

/** Splits a line by its color codes. Other control codes are removed. */
export function spansOf(line: string): Span[] {
  const overwritten = line.includes('\r') ? (line.replace(/\r+$/, '').split('\r').at(-1) ?? '') : line;
  const shown = overwritten.length > MAX_LINE ? overwritten.slice(0, MAX_LINE) : overwritten;
  const spans: Span[] = [];
  const style = { color: '', isBold: false, isDim: false, isItalic: false, isUnderlined: false };
  const add = (text: string) => {
    if (text === '') return;
    const classes = [
      style.color, style.isBold && 'ansi-bold', style.isDim && 'ansi-dim', style.isItalic && 'ansi-italic',
      style.isUnderlined && 'ansi-underline',
    ];
    spans.push({ text, classes: classes.filter(Boolean).join(' ') });
  };
  let end = 0;
  for (const match of shown.matchAll(CONTROL)) {
    add(shown.slice(end, match.index));
    end = match.index + match[0].length;
    if (match[2] === 'm') applyCodes(style, match[1] ?? '');
  }
  add(shown.slice(end));
  if (overwritten.length > MAX_LINE) {
    spans.push({ text: ` … ${overwritten.length - MAX_LINE} more characters`, classes: 'muted' });
  }
  return spans;
}

function applyCodes(
  style: { color: string; isBold: boolean; isDim: boolean; isItalic: boolean; isUnderlined: boolean },
  codes: string,
): void {
  const numbers = codes.split(/[;:]/).map(Number);
  for (let index = 0; index < numbers.length; index += 1) {
    const code = numbers[index] ?? 0;
    if (code === 0) Object.assign(style, { color: '', isBold: false, isDim: false, isItalic: false, isUnderlined: false });
    else if (code === 1) style.isBold = true;
    else if (code === 2) style.isDim = true;
    else if (code === 3) style.isItalic = true;
    else if (code === 4) style.isUnderlined = true;
    else if (code === 22) Object.assign(style, { isBold: false, isDim: false });
    else if (code === 39) style.color = '';
    else if (code >= 30 && code <= 37) style.color = `ansi-${COLORS[code - 30]}`;
    else if (code >= 90 && code <= 97) style.color = `ansi-${COLORS[code - 90]}`;
    else if (code === 38 || code === 48) {
      // Colors from a palette are not shown; their parameters are skipped.
      index += numbers[index + 1] === 5 ? 2 : numbers[index + 1] === 2 ? 4 : 0;
    }
  }
}
