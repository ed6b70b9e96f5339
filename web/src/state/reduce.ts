// The reducer: it makes what the page shows from the events of a log.
//
// It is pure. A batch copies each turn that it changes once, and changes the copy; callers see only new objects. So 100,000
// events cost little, and unchanged turns and blocks keep their identity, by which views decide what to render again.

import { TurnDraft } from './draft';
import { type LogEvent, list, optionalNumber, optionalText, text } from './events';
import type { Item, LogState, NoticeBlock, Request, Turn } from './model';
import { noticeOf } from './notices';
import { answerOf, questionOf, requestOf } from './requests';

/** The outcome of a batch: `gap` is set if events are missing after `state.last`. */
export interface Reduced {
  state: LogState;
  gap: boolean;
}

/** Applies one event. An event that the state contains already has no effect. */
export function reduce(state: LogState, event: LogEvent): LogState {
  return reduceAll(state, [event]).state;
}

/** Applies events in order, up to the first gap. */
export function reduceAll(state: LogState, events: readonly LogEvent[]): Reduced {
  const batch = new Batch(state);
  for (const event of events) {
    if (event.seq <= batch.last) continue;
    if (event.seq > batch.last + 1) return { state: batch.finish(), gap: true };
    batch.apply(event);
  }
  return { state: batch.finish(), gap: false };
}

class Batch {
  last: number;
  private first: number;
  private items: Item[];
  private requests: Record<string, Request>;
  private positions: Map<string, number> | undefined;
  private drafts = new Map<string, TurnDraft>();
  private hasChanged = false;

  constructor(private readonly before: LogState) {
    this.last = before.last;
    this.first = before.first;
    this.items = before.items;
    this.requests = before.requests;
  }

  finish(): LogState {
    if (!this.hasChanged) return this.before;
    for (const [id, draft] of this.drafts) {
      const position = this.position(id);
      if (position !== undefined) this.items[position] = draft.finish();
    }
    return { first: this.first, last: this.last, items: this.items, requests: this.requests };
  }

  apply(event: LogEvent): void {
    if (!this.hasChanged) {
      this.hasChanged = true;
      this.items = [...this.items];
    }
    this.last = event.seq;
    if (this.first === 0) this.first = event.seq;
    const turn = event.turnId === undefined ? undefined : this.draft(event.turnId, event);
    if (turn === undefined) {
      this.applyWithoutTurn(event);
      return;
    }
    turn.touch(event);
    if (!this.applyToTurn(turn, event)) turn.applyRunEvent(event);
  }

  private applyWithoutTurn(event: LogEvent): void {
    if (event.type === 'permission_answered') {
      this.answer(event);
      return;
    }
    const notice: NoticeBlock = noticeOf(event);
    this.items.push({ kind: 'notice', seq: event.seq, notice });
  }

  /** Applies an event that concerns requests or the turn as a whole. */
  private applyToTurn(turn: TurnDraft, event: LogEvent): boolean {
    switch (event.type) {
      case 'permission_request':
      case 'question': {
        const request = event.type === 'question' ? questionOf(event) : requestOf(event);
        // A crash may repeat a request; its answer counts.
        if (this.requests[request.id] === undefined) {
          this.setRequest(request);
          turn.addRequest(request, event);
        }
        return true;
      }
      case 'permission_answered':
        this.answer(event, turn);
        return true;
      case 'turn_finished':
        turn.close(event);
        this.closeRequests(turn, event);
        return true;
      default:
        return turn.applyTurnEvent(event);
    }
  }

  private answer(event: LogEvent, turn?: TurnDraft): void {
    const answer = answerOf(event);
    const request = this.requests[text(event, 'requestId')];
    if (request !== undefined) {
      this.setRequest({ ...request, answer: request.answer ?? answer });
      if (request.toolId !== undefined) turn?.decide(request.toolId, answer);
      return;
    }
    // A rule or the mode has answered: the event contains the request.
    turn?.applyRuleAnswer(event, answer);
  }

  private closeRequests(turn: TurnDraft, event: LogEvent): void {
    for (const id of turn.requestIds()) {
      const request = this.requests[id];
      if (request !== undefined && request.answer === undefined) {
        this.setRequest({ ...request, answer: { decision: 'turn_ended', at: event.at } });
      }
    }
  }

  private setRequest(request: Request): void {
    if (this.requests === this.before.requests) this.requests = { ...this.requests };
    this.requests[request.id] = request;
  }

  private draft(id: string, event: LogEvent): TurnDraft {
    const known = this.drafts.get(id);
    if (known !== undefined) return known;
    let position = this.position(id);
    if (position === undefined) {
      position = this.items.length;
      this.items.push(newTurn(id, event));
      this.positions?.set(id, position);
    }
    const draft = new TurnDraft(this.items[position] as Turn);
    this.drafts.set(id, draft);
    return draft;
  }

  private position(id: string): number | undefined {
    if (this.positions === undefined) {
      this.positions = new Map();
      this.items.forEach((item, index) => {
        if (item.kind === 'turn') this.positions?.set(item.id, index);
      });
    }
    return this.positions.get(id);
  }
}

function newTurn(id: string, event: LogEvent): Turn {
  const isQueued = event.type === 'turn_queued';
  return {
    kind: 'turn',
    id,
    seq: event.seq,
    lastSeq: event.seq,
    isPartial: !isQueued,
    messageId: optionalText(event, 'messageId'),
    author: isQueued ? text(event, 'author') : '',
    text: isQueued ? text(event, 'text') : '',
    attachments: list(event, 'attachments').filter((name): name is string => typeof name === 'string'),
    scheduleId: optionalText(event, 'scheduleId'),
    isEdited: false,
    state: isQueued ? 'queued' : 'running',
    attempt: optionalNumber(event, 'attempt') ?? 0,
    blocks: [],
    queuedAt: isQueued ? event.at : undefined,
    isClosed: false,
  };
}
