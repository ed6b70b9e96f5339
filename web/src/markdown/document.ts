// Parses a text that grows. Blocks before the last one are final: they keep their identity, so they are not rendered again.

import { Lexer, type Token, type TokensList } from 'marked';

/** A top-level block, with a key that stays the same while the text grows. */
export interface MarkdownBlock {
  key: number;
  token: Token;
  /** Further text may change it. */
  isOpen: boolean;
}

export class MarkdownDocument {
  private text = '';
  private finished: MarkdownBlock[] = [];
  /** The position after the last finished block. */
  private start = 0;
  private open: MarkdownBlock[] = [];
  private isClosed = false;
  private nextKey = 0;
  private links: TokensList['links'] = Object.create(null) as TokensList['links'];

  /** Returns the blocks of a text. A text that continues the last one costs only its end. */
  update(text: string, isClosed: boolean): readonly MarkdownBlock[] {
    if (text === this.text && isClosed === this.isClosed) return this.blocks();
    if (!text.startsWith(this.text) || this.isClosed) this.reset();
    this.text = text;
    this.isClosed = isClosed;
    if (isClosed) this.parseAll();
    else this.parseEnd();
    return this.blocks();
  }

  private blocks(): readonly MarkdownBlock[] {
    return this.open.length === 0 ? this.finished : [...this.finished, ...this.open];
  }

  private reset(): void {
    this.finished = [];
    this.open = [];
    this.start = 0;
    this.links = Object.create(null) as TokensList['links'];
  }

  private parseEnd(): void {
    const tokens = this.lex(this.text.slice(this.start));
    // The last block with content is open: a list may get another item, a paragraph another line.
    let last = tokens.length - 1;
    while (last > 0 && tokens[last]?.type === 'space') last -= 1;
    const before = this.open;
    const closed = tokens.slice(0, last).map((token, index) => reuse(before[index], token, false) ?? this.block(token, false));
    for (const block of closed) this.start += block.token.raw.length;
    const open = tokens.slice(last).map((token, index) => {
      const known = before[last + index];
      return { key: known?.key ?? this.nextKey++, token, isOpen: true };
    });
    // A new array causes views to render; its blocks are the same objects.
    this.finished = closed.length === 0 ? this.finished : [...this.finished, ...closed];
    this.open = open;
  }

  /** Parses the whole text at its end, and replaces the blocks that differ: a link may have been defined after its use. */
  private parseAll(): void {
    const before = [...this.finished, ...this.open];
    this.links = Object.create(null) as TokensList['links'];
    const tokens = this.lex(this.text);
    this.finished = tokens.map((token, index) => reuse(before[index], token, true) ?? this.block(token, false));
    this.open = [];
    this.start = this.text.length;
  }

  private block(token: Token, isOpen: boolean): MarkdownBlock {
    return { key: this.nextKey++, token, isOpen };
  }

  private lex(text: string): Token[] {
    const lexer = new Lexer({ gfm: true, breaks: false });
    Object.assign(lexer.tokens.links, this.links);
    const tokens = lexer.lex(text);
    this.links = { ...tokens.links };
    return [...tokens];
  }
}

/** Returns the known block if it shows the same as a token. */
function reuse(known: MarkdownBlock | undefined, token: Token, compareContent: boolean): MarkdownBlock | undefined {
  if (known === undefined || known.token.raw !== token.raw || known.token.type !== token.type) return undefined;
  if (compareContent && JSON.stringify(known.token) !== JSON.stringify(token)) return { ...known, token, isOpen: false };
  return known.isOpen ? { key: known.key, token: known.token, isOpen: false } : known;
}
