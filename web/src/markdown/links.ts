// Which addresses the page links.

const SCHEMES = new Set(['http:', 'https:', 'mailto:']);

/** Returns the address of a link, or nothing if it is of another kind. */
export function safeLink(address: string): string | undefined {
  // A browser skips these characters, so they could hide a scheme.
  const text = [...address].filter((character) => character > ' ' && character !== '\u007f').join('');
  if (text.startsWith('#') || !/^[a-z][a-z0-9+.-]*:/i.test(text)) return undefined;
  try {
    const url = new URL(text);
    return SCHEMES.has(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the host of a link, for people. */
export function hostOf(address: string): string {
  try {
    return new URL(address).host;
  } catch {
    return '';
  }
}
