// Renders Markdown tokens as nodes. Nothing is parsed as HTML: raw HTML is shown as text.

import type { Token, Tokens } from 'marked';
import { Lexer } from 'marked';
import type { ComponentChildren, VNode } from 'preact';
import { memo } from 'preact/compat';

import { CodeBlock } from './code';
import type { MarkdownBlock } from './document';
import { decodeEntities } from './entities';
import { hostOf, safeLink } from './links';
import { closeMarks } from './tail';

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
  const items = token.items.map((item, index) => {
    const isLast = isOpen && index === token.items.length - 1;
    return (
      <li class={item.task ? 'task' : undefined} dir="auto">
        {item.task && <span class="task-mark" role="img" aria-label={item.checked ? 'done' : 'to do'}>{item.checked ? '☑' : '☐'}</span>}
        {blocks(item.tokens.filter((inner) => (inner.type as string) !== 'checkbox'), isLast)}
      </li>
    );
  });
  const direction = directionOf(token.raw);
  return token.ordered ? <ol start={Number(token.start) || 1} dir={direction}>{items}</ol> : <ul dir={direction}>{items}</ul>;
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

function inline(tokens: Token[] | undefined): ComponentChildren {
  return (tokens ?? []).map((token) => renderInline(token));
}

function renderInline(token: Token): ComponentChildren {
  switch (token.type) {
    case 'strong':
      return <strong>{inline((token as Tokens.Strong).tokens)}</strong>;
    case 'em':
      return <em>{inline((token as Tokens.Em).tokens)}</em>;
    case 'del':
      return <del>{inline((token as Tokens.Del).tokens)}</del>;
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>;
    case 'br':
      return <br />;
    case 'link':
      return link(token as Tokens.Link);
    case 'image':
      return image(token as Tokens.Image);
    case 'escape':
      return (token as Tokens.Escape).text;
    case 'text': {
      const { tokens, text } = token as Tokens.Text;
      return tokens === undefined ? decodeEntities(text) : inline(tokens);
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
