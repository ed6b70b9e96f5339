// Renders Markdown tokens as nodes. Nothing is parsed as HTML: raw HTML is shown as text.

import type { Token, Tokens } from 'marked';
import { Lexer } from 'marked';
import type { ComponentChildren, VNode } from 'preact';
import { memo } from 'preact/compat';

import { CodeBlock } from './code';
import type { MarkdownBlock } from './document';
import { decodeEntities } from './entities';
import { hostOf, safeLink } from './links';
import { isBackslashText, isCall, marksOf } from './names';
import { closeMarks } from './tail';

/** The characters before a mark that can decide whether it is part of a name. */
const MAX_CONTEXT = 200;

/** One block. A finished one is never rendered again. */
export const MarkdownBlockView = memo(
  function MarkdownBlockView({ block }: { block: MarkdownBlock }) {
    return <>{renderBlock(block.isOpen ? withClosedMarks(block.token) : block.token, block.isOpen)}</>;
  },
  (before, after) => before.block === after.block,
);

/** A whole text that does not grow. */
export function Markdown({ text }: { text: string }) {
  return <>{new Lexer({ gfm: true }).lex(text).map((token) => renderBlock(token, false))}</>;
}

function withClosedMarks(token: Token): Token {
  if (token.type !== 'paragraph') return token;
  const text = closeMarks(token.raw);
  return text === token.raw ? token : (new Lexer({ gfm: true }).lex(text)[0] ?? token);
}

function renderBlock(token: Token, isOpen: boolean): ComponentChildren {
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'hr':
      return <hr />;
    case 'heading':
      return heading(token as Tokens.Heading);
    case 'paragraph':
      return <p dir="auto">{inline((token as Tokens.Paragraph).tokens)}</p>;
    case 'blockquote':
      return <blockquote dir={directionOf(token.raw)}>{blocks((token as Tokens.Blockquote).tokens, isOpen)}</blockquote>;
    case 'list':
      return list(token as Tokens.List, isOpen);
    case 'code':
      return <CodeBlock code={(token as Tokens.Code).text} language={languageOf(token as Tokens.Code)} isOpen={isOpen} />;
    case 'table':
      return table(token as Tokens.Table);
    case 'html':
      return <p class="raw" dir="auto">{(token as Tokens.HTML).raw.trimEnd()}</p>;
    case 'text': {
      const { tokens, text } = token as Tokens.Text;
      return tokens === undefined ? decodeEntities(text) : inline(tokens);
    }
    default:
      return <p dir="auto">{token.raw}</p>;
  }
}

function blocks(tokens: Token[], isOpen: boolean): ComponentChildren {
  return tokens.map((token, index) => renderBlock(token, isOpen && index === tokens.length - 1));
}

/** Returns the direction of the first letter. `auto` does not look into blocks that have a direction of their own. */
function directionOf(text: string): 'ltr' | 'rtl' {
  const letter = /\p{L}/u.exec(text)?.[0] ?? '';
  return /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(letter) ? 'rtl' : 'ltr';
}

/** An answer may start with any level, so all of its headings have the one below the page's. Their size shows the level. */
function heading({ depth, tokens }: Tokens.Heading): VNode {
  return <h2 class={`heading-${depth}`} dir="auto">{inline(tokens)}</h2>;
}

function list(token: Tokens.List, isOpen: boolean): VNode {
  const numbers = numbersOf(token);
  const items = token.items.map((item, index) => {
    const isLast = isOpen && index === token.items.length - 1;
    return (
      <li class={item.task ? 'task' : undefined} value={numbers?.[index]} dir="auto">
        {item.task && <span class="task-mark" role="img" aria-label={item.checked ? 'done' : 'to do'}>{item.checked ? '☑' : '☐'}</span>}
        {blocks(item.tokens.filter((inner) => (inner.type as string) !== 'checkbox'), isLast)}
      </li>
    );
  });
  const direction = directionOf(token.raw);
  return token.ordered ? <ol start={Number(token.start) || 1} dir={direction}>{items}</ol> : <ul dir={direction}>{items}</ul>;
}

/** Returns the numbers of a list as they are written. If all are the same, the items are counted. */
function numbersOf(token: Tokens.List): number[] | undefined {
  if (!token.ordered) return undefined;
  const numbers = token.items.map((item) => Number.parseInt(item.raw.trimStart(), 10));
  const isWritten = numbers.some((number) => number !== numbers[0]) && !numbers.some(Number.isNaN);
  return isWritten ? numbers : undefined;
}

function table(token: Tokens.Table): VNode {
  const alignment = (index: number) => {
    const align = token.align[index];
    return align === null || align === undefined ? undefined : `align-${align}`;
  };
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>{token.header.map((cell, index) => <th scope="col" class={alignment(index)} dir="auto">{inline(cell.tokens)}</th>)}</tr>
        </thead>
        <tbody>
          {token.rows.map((row) => (
            <tr>{row.map((cell, index) => <td class={alignment(index)} dir="auto">{inline(cell.tokens)}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Renders the tokens between two texts, which decide whether a mark is part of a name. */
function inline(tokens: Token[] | undefined, before = '', after = ''): ComponentChildren {
  const all = tokens ?? [];
  let start = before;
  return all.map((token, index) => {
    const rest = all.slice(index + 1, index + 3).map((next) => next.raw).join('');
    const rendered = renderInline(token, start, index + 3 > all.length ? rest + after : rest);
    start = (start + token.raw).slice(-MAX_CONTEXT);
    return rendered;
  });
}

function emphasis(token: Tokens.Strong | Tokens.Em | Tokens.Del, before: string, after: string): ComponentChildren {
  const length = (token.raw.length - token.text.length) / 2;
  const [open, close] = [token.raw.slice(0, length), token.raw.slice(token.raw.length - length)];
  const marks = marksOf(token.raw, before, after);
  const text = inline(token.tokens, before + open, close + after);
  if (marks === 'text') return <>{open}{text}{close}</>;
  const shown = marks === 'shown' ? <>{open}{text}{close}</> : text;
  if (token.type === 'strong') return <strong>{shown}</strong>;
  return token.type === 'em' ? <em>{shown}</em> : <del>{shown}</del>;
}

function renderInline(token: Token, before: string, after: string): ComponentChildren {
  switch (token.type) {
    case 'strong':
    case 'em':
    case 'del':
      return emphasis(token as Tokens.Strong | Tokens.Em | Tokens.Del, before, after);
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>;
    case 'br':
      // A backslash at the end of a line can continue a command.
      return token.raw.startsWith('\\') ? <>{'\\'}<br /></> : <br />;
    case 'link':
      return token.raw.startsWith('[') && isCall((token as Tokens.Link).href, before) ? token.raw : link(token as Tokens.Link);
    case 'image':
      return image(token as Tokens.Image);
    case 'escape': {
      const { raw, text } = token as Tokens.Escape;
      return raw.startsWith('\\') && isBackslashText(raw.slice(1), before, after) ? raw : text;
    }
    case 'text': {
      const { tokens, text } = token as Tokens.Text;
      return tokens === undefined ? decodeEntities(text) : inline(tokens, before, after);
    }
    default:
      return token.raw;
  }
}

function link(token: Tokens.Link): ComponentChildren {
  const address = safeLink(token.href);
  if (address === undefined) {
    const text = inline(token.tokens);
    return token.text === token.href ? text : <span title={token.href}>{text} <code>{token.href}</code></span>;
  }
  return <a href={address} target="_blank" rel="noopener noreferrer">{inline(token.tokens)}</a>;
}

/** An image of another site would report to it that the answer is read, and could carry data: only a link is shown. */
function image(token: Tokens.Image): ComponentChildren {
  const address = safeLink(token.href);
  const text = token.text === '' ? 'Image' : token.text;
  if (address === undefined) return <span class="image-link">{text}</span>;
  return (
    <a class="image-link" href={address} target="_blank" rel="noopener noreferrer" title="Images of other sites are not loaded">
      {text} <span class="muted">({hostOf(address)})</span>
    </a>
  );
}

function languageOf(token: Tokens.Code): string {
  return (token.lang ?? '').trim().split(/[\s,{]/)[0] ?? '';
}
