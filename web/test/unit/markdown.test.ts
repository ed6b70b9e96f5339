import { Lexer } from 'marked';
import { describe, expect, it } from 'vitest';

import { MarkdownDocument } from '../../src/markdown/document';
import { decodeEntities } from '../../src/markdown/entities';
import { hostOf, safeLink } from '../../src/markdown/links';
import { closeMarks } from '../../src/markdown/tail';
import { random } from './log';

const PARTS = [
  '# Title\n\n', 'A paragraph with **bold** text.\n', '\n', '- one\n', '- two\n', '  - inner\n', '1. first\n', '```js\nlet a = 1;\n', '```\n\n',
  '| a | b |\n|---|---|\n', '| 1 | 2 |\n', '> quote\n', '---\n\n', '<b>html</b>\n\n', '[link][x]\n\n', '[x]: http://example.com\n\n', '`code` ', '~~~\n',
];

const shape = (tokens: readonly { type: string; raw: string }[]) => tokens.map(({ type, raw }) => [type, raw]);

describe('a text that grows', () => {
  it('ends with the blocks of a whole parse', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const next = random(seed);
      const text = [...Array(30)].map(() => PARTS[Math.floor(next() * PARTS.length)]).join('');
      const document = new MarkdownDocument();
      for (let end = 0; end < text.length; end += 1 + Math.floor(next() * 20)) document.update(text.slice(0, end), false);
      const blocks = document.update(text, true);
      expect(shape(blocks.map((block) => block.token)), `seed ${seed}`).toEqual(shape(new Lexer({ gfm: true }).lex(text)));
      expect(new Set(blocks.map((block) => block.key)).size).toBe(blocks.length);
    }
  });

  it('keeps its finished blocks, which are the same objects to the end', () => {
    const document = new MarkdownDocument();
    const text = 'One.\n\nTwo.\n\n```rust\nfn main() {}\n```\n\nThree, and so on.';
    let before = document.update(text.slice(0, 14), false);
    for (let end = 15; end <= text.length; end += 1) {
      const blocks = document.update(text.slice(0, end), false);
      before.filter((block) => !block.isOpen).forEach((block, index) => expect(blocks[index]).toBe(block));
      before = blocks;
    }
    const finished = before.filter((block) => !block.isOpen);
    const closed = document.update(text, true);
    finished.forEach((block, index) => expect(closed[index]).toBe(block));
    expect(closed.every((block) => !block.isOpen)).toBe(true);
  });

  it('starts again if its text is replaced', () => {
    const document = new MarkdownDocument();
    document.update('first\n\nsecond', false);
    expect(shape(document.update('other', false).map((block) => block.token))).toEqual([['paragraph', 'other']]);
  });

  it('closes marks that are still open', () => {
    expect(closeMarks('a **bold')).toBe('a **bold**');
    expect(closeMarks('a **bold*')).toBe('a **bold**');
    expect(closeMarks('a **')).toBe('a ');
    expect(closeMarks('run `cargo te')).toBe('run `cargo te`');
    expect(closeMarks('see [the docs](http://exa')).toBe('see the docs');
    expect(closeMarks('see [the do')).toBe('see the do');
    expect(closeMarks('done `**` and **b**')).toBe('done `**` and **b**');
  });
});

describe('links', () => {
  it('are those of the web and of mail only', () => {
    expect(safeLink('https://example.com/a?b#c')).toBe('https://example.com/a?b#c');
    expect(safeLink('mailto:ada@example.com')).toBe('mailto:ada@example.com');
    const bad = ['javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'java\tscript:alert(1)', ' javascript:alert(1)', '\u0001javascript:alert(1)',
      'data:text/html,<script>1</script>', 'vbscript:x', 'file:///etc/passwd', '//example.com', '/v1/tokens', '#/c/1', 'blob:https://x', 'https://'];
    for (const address of bad) expect(safeLink(address), address).toBeUndefined();
    expect(hostOf('https://a.example:8080/x')).toBe('a.example:8080');
  });
});

it('entities become their characters, and unknown ones stay', () => {
  expect(decodeEntities('a &lt;b&gt; &amp;amp; &#x1F642; &#0; &unknown; &copy;')).toBe('a <b> &amp; 🙂 \ufffd &unknown; ©');
});
