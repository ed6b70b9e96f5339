// Makes the end of an unfinished text readable: marks that are not closed yet are closed for the time being.

/** Returns the text of an open paragraph as it will probably be meant. */
export function closeMarks(source: string): string {
  let text = source;
  // A link or an image of which only the beginning is there: its text is shown.
  text = text.replace(/!?\[([^\]\n]*)\]\([^)\s]*$/, '$1');
  text = text.replace(/!?\[([^\]\n]*)$/, '$1');
  const withoutCode = text.replace(/(`+)[^`]*?[^`]\1(?!`)/g, '');
  if (withoutCode.includes('`')) {
    const mark = /`+/.exec(withoutCode)?.[0] ?? '`';
    return text.endsWith(mark) ? text.slice(0, -mark.length) : text + mark;
  }
  // An underscore is part of a name.
  for (const mark of ['**', '~~']) {
    if (count(withoutCode, mark) % 2 === 1) {
      if (text.endsWith(mark)) text = text.slice(0, -mark.length);
      else text = text.trimEnd().replace(/[*_~]$/, '') + mark;
    }
  }
  return text;
}

function count(text: string, mark: string): number {
  return text.split(mark).length - 1;
}
