// An open conversation: its log, its connection, and what the person does in it.

import { computed, signal } from '@preact/signals';

import * as api from '../api/calls';
import { type Connection, Follower } from '../api/follower';
import { Problem, asProblem } from '../api/http';
import { readRange } from '../api/range';
import type { Conversation } from '../api/types';
import { announce } from './announce';
import type { LogEvent } from './events';
import { onFrame } from './frames';
import { type LogState, type Request, type Turn, emptyLog, isEnded, logAfter, openRequests, turnsOf } from './model';
import { reduceAll } from './reduce';
import { questionOf, requestOf } from './requests';
import { StreamSlot } from './slot';

/** The number of events that are loaded at once. */
export const WINDOW = 3_000;

/** How long a visible tab waits before it takes a connection from another one. */
const SLOT_WAIT_MS = 10_000;

/** A message that is accepted and not in the loaded log yet. */
export interface SentMessage {
  messageId: string;
  turnId: string;
  text: string;
  attachments: string[];
}

const eventsUrl = (id: string, after: number) => `/v1/conversations/${encodeURIComponent(id)}/events?after=${after}`;

export class OpenConversation {
  readonly log = signal<LogState>(emptyLog);
  readonly details = signal<Conversation | undefined>(undefined);
  readonly connection = signal<Connection>({ state: 'connecting' });
  /** The conversation cannot be shown. */
  readonly problem = signal<Problem | undefined>(undefined);
  readonly sent = signal<SentMessage[]>([]);
  readonly stopping = signal<ReadonlySet<string>>(new Set());
  readonly isLoadingEarlier = signal(false);
  /** The log is loaded up to the number that it had when it was opened. */
  readonly isLoaded = signal(false);
  /** Open requests that were made before the loaded part of the log. */
  private readonly earlierRequests = signal<Request[]>([]);

  private events: LogEvent[] = [];
  private waiting: LogEvent[] = [];
  private target = 0;
  private isOpening = false;
  private readonly closing = new AbortController();
  private readonly follower: Follower;
  private readonly slot = new StreamSlot(() => this.lostSlot());

  constructor(readonly id: string) {
    this.follower = new Follower({
      url: (after) => eventsUrl(id, after),
      last: () => this.waiting.at(-1)?.seq ?? this.log.value.last,
      onEvents: (events) => this.receive(events),
      onConnection: (connection) => {
        this.connection.value = connection;
      },
      onOpen: () => void this.check(),
      onLost: (problem) => this.lost(problem),
    });
  }

  /** The turns of a fork's copied log, which belong to the original conversation. */
  isCopied(turn: Turn): boolean {
    const fork = this.details.value?.forkedFrom;
    return fork !== undefined && turn.seq <= fork.seq;
  }

  readonly active = computed<Turn | undefined>(() => {
    const states = ['running', 'retrying', 'paused'];
    return turnsOf(this.log.value).find(
      (turn) => states.includes(turn.state) && turn.joinedInto === undefined && !this.isCopied(turn),
    );
  });

  readonly queued = computed<Turn[]>(() =>
    turnsOf(this.log.value).filter((turn) => turn.state === 'queued' && !this.isCopied(turn)),
  );

  readonly requests = computed<Request[]>(() => {
    const fork = this.details.value?.forkedFrom;
    const turns = new Map(turnsOf(this.log.value).map((turn) => [turn.id, turn]));
    const own = openRequests(this.log.value).filter((request) => {
      const turn = request.turnId === undefined ? undefined : turns.get(request.turnId);
      return fork === undefined || turn === undefined || turn.seq > fork.seq;
    });
    const known = this.log.value.requests;
    return [...this.earlierRequests.value.filter((request) => known[request.id] === undefined), ...own];
  });

  async open(): Promise<void> {
    if (this.isOpening) return;
    this.isOpening = true;
    void this.slot.take();
    try {
      const details = await api.getConversation(this.id);
      if (this.closing.signal.aborted) return;
      this.details.value = details;
      this.restart(details);
    } catch (error) {
      this.problem.value = asProblem(error);
    } finally {
      this.isOpening = false;
    }
  }

  close(): void {
    this.closing.abort();
    this.follower.close();
    this.slot.free();
  }

  /** Stops following while the page is hidden. */
  pause(): void {
    this.follower.close();
    this.slot.free();
  }

  /** Another tab has the connection now. A tab that is visible beside it takes one back a little later. */
  private lostSlot(): void {
    this.follower.close();
    setTimeout(() => {
      if (document.visibilityState === 'visible' && !this.closing.signal.aborted) this.wake();
    }, SLOT_WAIT_MS);
  }

  /** Follows again, or replaces a connection that was silent. */
  wake(): void {
    void this.slot.take();
    if (this.problem.value !== undefined || this.details.value === undefined) void this.retryOpen();
    else if (this.follower.isClosed) this.follower.open();
    else this.follower.refresh();
  }

  retryNow(): void {
    this.follower.open();
  }

  private async retryOpen(): Promise<void> {
    this.problem.value = undefined;
    await this.open();
  }

  private restart(details: Conversation): void {
    const start = Math.max(details.oldestSeq - 1, details.lastSeq - WINDOW, 0);
    const continues = this.log.value.first > 0 && this.log.value.last >= start && this.log.value.last <= details.lastSeq;
    if (!continues) {
      this.events = [];
      this.waiting = [];
      this.log.value = logAfter(start);
    }
    this.target = details.lastSeq;
    this.isLoaded.value = this.log.value.last >= this.target;
    this.follower.open();
  }

  private receive(events: LogEvent[]): void {
    this.waiting.push(...events);
    onFrame(this.id, () => this.applyWaiting());
  }

  private applyWaiting(): void {
    const events = this.waiting;
    this.waiting = [];
    const before = this.log.value;
    const { state, gap } = reduceAll(before, events);
    for (const event of events) {
      if (event.seq > before.last && event.seq <= state.last) this.events.push(event);
    }
    this.log.value = state;
    if (!this.isLoaded.value) this.isLoaded.value = state.last >= this.target;
    else this.announce(events, before.last);
    this.settle(state);
    if (gap) this.follower.reopen();
  }

  /** Removes what the log shows now. */
  private settle(state: LogState): void {
    if (this.sent.value.length > 0) {
      const known = new Set(turnsOf(state).map((turn) => turn.id));
      this.sent.value = this.sent.value.filter((message) => !known.has(message.turnId));
    }
    if (this.stopping.value.size > 0) {
      const ended = turnsOf(state).filter((turn) => isEnded(turn) && this.stopping.value.has(turn.id));
      if (ended.length > 0) {
        const ids = new Set(ended.map((turn) => turn.id));
        this.stopping.value = new Set([...this.stopping.value].filter((id) => !ids.has(id)));
      }
    }
  }

  private announce(events: LogEvent[], last: number): void {
    for (const event of events) {
      if (event.seq <= last) continue;
      if (event.type === 'turn_started') announce('Working');
      else if (event.type === 'permission_request') announce('Needs your decision');
      else if (event.type === 'question') announce('Has a question');
      else if (event.type === 'turn_finished') announce(FINISHED[String(event['state'])] ?? 'Finished');
    }
    const changes = ['turn_queued', 'turn_started', 'turn_finished', 'permission_request', 'permission_answered', 'question'];
    if (events.some((event) => event.seq > last && changes.includes(event.type))) this.onChange?.();
  }

  /** Called when the state of the conversation may have changed. */
  onChange: (() => void) | undefined;

  /** Checks what the loaded events do not contain: older requests, and aborts. */
  private async check(): Promise<void> {
    try {
      const { items } = await api.permissionRequests({ state: 'open', conversationId: this.id, limit: 100 });
      this.earlierRequests.value = items.map((item) => {
        const event: LogEvent = {
          ...item.request, type: String(item.request['type']), seq: 0, at: item.requestedAt, turnId: item.turnId,
        };
        return event.type === 'question' ? questionOf(event) : requestOf(event);
      });
      const active = this.active.value;
      if (active !== undefined && (await api.getTurn(active.id)).abortRequested) this.markStopping(active.id);
    } catch {
      // The connection shows that the gateway cannot be reached.
    }
  }

  private lost(problem: Problem): void {
    if (problem.status === 401) return;
    if (problem.status === 409 || problem.status === 410) {
      this.events = [];
      this.log.value = emptyLog;
      void this.open();
      return;
    }
    this.problem.value = problem;
  }

  get hasEarlier(): boolean {
    const details = this.details.value;
    const { first } = this.log.value;
    return details !== undefined && first > Math.max(details.oldestSeq, 1);
  }

  /** Loads the part of the log before the one that is loaded. */
  async loadEarlier(): Promise<void> {
    const { first } = this.log.value;
    const details = this.details.value;
    if (!this.hasEarlier || this.isLoadingEarlier.value || details === undefined) return;
    this.isLoadingEarlier.value = true;
    try {
      const start = Math.max(details.oldestSeq - 1, first - 1 - WINDOW);
      const earlier = await readRange(eventsUrl(this.id, start), first - 1, this.closing.signal);
      if (earlier.length > 0 && this.log.value.first === first) {
        this.events = [...earlier, ...this.events];
        this.log.value = reduceAll(logAfter((earlier[0]?.seq ?? 1) - 1), this.events).state;
      }
    } catch (error) {
      const problem = asProblem(error);
      // Retention has deleted events since the conversation was loaded.
      if (problem.status === 410) this.details.value = await api.getConversation(this.id).catch(() => details);
    } finally {
      this.isLoadingEarlier.value = false;
    }
  }

  addSent(message: SentMessage): void {
    if (turnsOf(this.log.value).some((turn) => turn.id === message.turnId)) return;
    if (this.sent.value.some((known) => known.messageId === message.messageId)) return;
    this.sent.value = [...this.sent.value, message];
  }

  async stop(turnId: string): Promise<void> {
    this.markStopping(turnId);
    try {
      await api.abortTurn(turnId);
    } catch (error) {
      const problem = asProblem(error);
      this.stopping.value = new Set([...this.stopping.value].filter((id) => id !== turnId));
      // It has ended in the meantime.
      if (problem.status !== 409) throw problem;
    }
  }

  private markStopping(turnId: string): void {
    this.stopping.value = new Set([...this.stopping.value, turnId]);
  }

  /** Removes a request that is answered, although its event is not loaded. */
  forgetRequest(requestId: string): void {
    this.earlierRequests.value = this.earlierRequests.value.filter((request) => request.id !== requestId);
  }
}

const FINISHED: Record<string, string> = { done: 'Finished', failed: 'Failed', aborted: 'Stopped' };
