// Decides which marks are markup, and which are part of a name, a path or a command. The crate teamster-markdown has the same
// rules for terminals and chat services.

/** How the marks around a text are shown: hidden, with the emphasized text, or as text without an emphasis. */
export type Marks = 'hidden' | 'shown' | 'text';

const MARKS_AT_END = /[*_~]+$/;
const MARKS_AT_START = /^[*_~]+/;
/** A character of a name. Scripts without spaces between words have other characters. */
const NAME = /[\p{L}\p{N}_]/u;
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;

/** Returns how the marks of an emphasized text are shown, between the texts before and after it. */
export function marksOf(raw: string, before: string, after: string): Marks {
  const mark = /^(?:\*\*|__|~~|[*_~])/.exec(raw)?.[0] ?? '';
  const inner = raw.slice(mark.length, raw.length - mark.length);
  const isMarkup =
    mark !== '' && mayOpenAfter(before.replace(MARKS_AT_END, '')) && mayCloseBefore(after.replace(MARKS_AT_START, '')) && isPhrase(inner);
  if (!isMarkup) return 'text';
  const isOneWord = !/\s/.test(inner);
  if (mark.startsWith('_')) return isOneWord ? 'text' : 'shown';
  if (mark === '~' || (mark === '*' && isPattern(inner, isOneWord))) return 'text';
  // A pattern of paths.
  if (mark.startsWith('*') && (inner.startsWith('/') || inner.endsWith('/'))) return 'text';
  return 'hidden';
}

/** Whether a backslash between these texts is part of a path, a pattern or a command, and escapes nothing. */
export function isBackslashText(escaped: string, before: string, after: string): boolean {
  const line = before.split('\n').at(-1)?.trimStart() ?? '';
  const word = line.split(/\s/).at(-1) ?? '';
  const rest = after.split(/\s/)[0] ?? '';
  const isInPath = hasBackslash(word) || hasBackslash(rest) || /^["'(]*[a-z]:$/i.test(word);
  const next = after.charAt(0);
  switch (escaped) {
    case '_':
    case '#':
      return isInPath;
    case '*':
      return isInPath || next === '.' || next === '/';
    case '~':
      return isInPath || next === '/';
    case '`':
      return false;
    case '.':
    case ')':
      return !/^\d+$/.test(line);
    case '-':
    case '+':
    case '=':
      return line !== '' || next !== ' ';
    case '[':
      return !/^[^\]]*\][([:]/.test(after);
    case ']':
      return !/^[([:]/.test(after);
    case '<':
      return !(/[A-Za-z0-9]$/.test(word) && /^[\p{L}\p{N}]/u.test(after));
    case '>':
      return line === '' ? next !== ' ' : !/^.+\\</.test(word);
    case '!':
      return next !== '[';
    case '&':
      return !rest.includes(';');
    default:
      return true;
  }
}

/** Whether a link after this text is a call, such as `handlers[name](event)`, or has no target. */
export function isCall(target: string, before: string): boolean {
  const followsName = (NAME.test(before.slice(-1)) && !WIDE.test(before.slice(-1))) || /[)\]"']$/.test(before);
  return target === '' || (followsName && !target.includes('://') && !target.startsWith('mailto:'));
}

function isName(character: string): boolean {
  return NAME.test(character) && !WIDE.test(character);
}

function isOther(character: string): boolean {
  return character > '\u007f' && !isName(character);
}

function mayOpenAfter(before: string): boolean {
  const last = [...before.slice(-2)].at(-1) ?? '';
  const other = before.slice(0, before.length - last.length).slice(-1);
  if (last === '' || /[\s([{"'`>|,;!?]/.test(last)) return last !== '{';
  if (last === ':') return other !== ':';
  if (last === '-') return other === '' || /[\s-]/.test(other);
  return isOther(last);
}

function mayCloseBefore(after: string): boolean {
  const first = [...after.slice(0, 2)][0] ?? '';
  if (first === '' || /[\s)\]}"'`,;!?<>|]/.test(first)) return true;
  const next = [...after].find((character) => character !== first) ?? '';
  if (first === '.') return next === '' || !(isName(next) || '/\\*({'.includes(next));
  if (first === ':') return !after.startsWith('::') && next !== '/' && next !== '\\';
  if (first === '-') return next === '' || /\s/.test(next);
  return isOther(first);
}

/** Whether a text between two marks can be words, and not what is between two names. */
function isPhrase(inner: string): boolean {
  const core = inner.replace(MARKS_AT_START, '').replace(MARKS_AT_END, '');
  const startsInside = /^[)\]},;:?\\|=]/.test(core);
  const endsInside = /\s["']$|[([{\\]$/.test(core);
  return !startsInside && !endsInside && /[\p{L}\p{N}]|[^\u0000-\u007f]/u.test(core);
}

/** Whether a text between two asterisks is a part of file name patterns, pointers or formulas. */
function isPattern(inner: string, isOneWord: boolean): boolean {
  const core = inner.replace(/^\*+|\*+$/g, '');
  if (/^[./\-+&%=@]/.test(core) || core.startsWith('_') !== core.endsWith('_') || /[/&]$/.test(core)) return true;
  const word = core.replace(/^["'`()[\]“”‘’]+|["'`()[\]“”‘’]+$/g, '').replace(/[!?:,]+$/, '');
  return isOneWord && !(/^(?:[\p{L}\p{N}'*`-]|[^\u0000-\u007f])+$/u.test(word) && /\p{L}|[^\u0000-\u007f]/u.test(word));
}

/** Whether a word has a backslash that escapes nothing, as in `C:\new`. */
function hasBackslash(word: string): boolean {
  return /\\(?:$|[\p{L}\p{N}])/u.test(word);
}
