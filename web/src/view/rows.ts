// The rows of a transcript. A row is a part that can be shown without the rest: a message, some blocks of an answer, a tool call.
//
// Rows of unchanged blocks keep their identity, so that nothing but the end of a running answer is rendered again.

import { type MarkdownBlock, MarkdownDocument } from '../markdown/document';
import type { SentMessage } from '../state/conversation';
import type { Block, LogState, NoticeBlock, PlanBlock, RequestBlock, TextBlock, ToolBlock, Turn } from '../state/model';
import { dayText } from './titles';

export type Row =
  | { type: 'day'; key: string; text: string }
  | { type: 'message'; key: string; turn: Turn }
  | { type: 'pending'; key: string; sent: SentMessage }
  | { type: 'text'; key: string; blocks: readonly MarkdownBlock[] }
  | { type: 'thinking'; key: string; block: TextBlock; isRunning: boolean }
  | { type: 'tool'; key: string; block: ToolBlock }
  | { type: 'plan'; key: string; block: PlanBlock }
  | { type: 'request'; key: string; block: RequestBlock }
  | { type: 'notice'; key: string; notice: NoticeBlock }
  | { type: 'footer'; key: string; turn: Turn };

/** The number of blocks of an answer in one row. */
const CHUNK = 12;

interface CachedRows {
  isClosed: boolean;
  rows: Row[];
}

export class RowBuilder {
  private documents = new Map<string, MarkdownDocument>();
  private byBlock = new WeakMap<Block, CachedRows>();
  private byTurn = new WeakMap<Turn, Row[]>();

  build(state: LogState, sent: readonly SentMessage[]): Row[] {
    const rows: Row[] = [];
    let day = '';
    for (const item of state.items) {
      const at = item.kind === 'turn' ? (item.queuedAt ?? item.startedAt) : item.notice.at;
      const next = at === undefined ? day : dayText(at);
      if (next !== day) {
        rows.push({ type: 'day', key: `day${item.seq}`, text: next });
        day = next;
      }
      if (item.kind === 'notice') rows.push({ type: 'notice', key: item.notice.key, notice: item.notice });
      else rows.push(...this.turn(item));
    }
    for (const message of sent) rows.push({ type: 'pending', key: `m${message.turnId}`, sent: message });
    return rows;
  }

  /** Returns the rows of the blocks of a subagent. */
  blocks(blocks: readonly Block[], isClosed: boolean): Row[] {
    return blocks.flatMap((block, index) => this.block(block, isClosed || index < blocks.length - 1));
  }

  private turn(turn: Turn): Row[] {
    const known = this.byTurn.get(turn);
    if (known !== undefined) return known;
    const rows: Row[] = [];
    if (!turn.isPartial) rows.push({ type: 'message', key: `m${turn.id}`, turn });
    rows.push(...this.blocks(turn.blocks, turn.isClosed));
    rows.push({ type: 'footer', key: `f${turn.id}`, turn });
    this.byTurn.set(turn, rows);
    return rows;
  }

  private block(block: Block, isClosed: boolean): Row[] {
    const known = this.byBlock.get(block);
    if (known?.isClosed === isClosed) return known.rows;
    const rows = this.newRows(block, isClosed, known?.rows ?? []);
    this.byBlock.set(block, { isClosed, rows });
    return rows;
  }

  private newRows(block: Block, isClosed: boolean, before: Row[]): Row[] {
    switch (block.kind) {
      case 'text':
        return this.text(block, isClosed, before);
      case 'thinking':
        return [{ type: 'thinking', key: block.key, block, isRunning: !isClosed }];
      case 'tool':
        // A question is shown as such.
        if (block.name === 'AskUserQuestion' && block.result?.isError !== true) return [];
        return [{ type: 'tool', key: block.key, block }];
      case 'plan':
        return [{ type: 'plan', key: block.key, block }];
      case 'request':
        return [{ type: 'request', key: block.key, block }];
      case 'notice':
        return [{ type: 'notice', key: block.key, notice: block }];
    }
  }

  private text(block: TextBlock, isClosed: boolean, before: Row[]): Row[] {
    let document = this.documents.get(block.key);
    if (document === undefined) {
      document = new MarkdownDocument();
      this.documents.set(block.key, document);
    }
    const blocks = document.update(block.text, isClosed).filter(({ token }) => token.type !== 'space' && token.type !== 'def');
    const rows: Row[] = [];
    for (let start = 0; start < blocks.length; start += CHUNK) {
      const part = blocks.slice(start, start + CHUNK);
      const known = before[rows.length];
      const isKnown =
        known?.type === 'text' && known.blocks.length === part.length &&
        part.every((one, index) => one === known.blocks[index]);
      rows.push(isKnown ? known : { type: 'text', key: `${block.key}:${rows.length}`, blocks: part });
    }
    return rows;
  }
}
