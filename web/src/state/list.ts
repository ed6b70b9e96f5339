// The list of conversations. It is read again every few seconds while the page is visible, and after own changes.

import { computed, signal } from '@preact/signals';

import * as api from '../api/calls';
import { type Problem, asProblem } from '../api/http';
import type { Conversation, ConversationState } from '../api/types';

const INTERVAL_MS = 5_000;

/** The wait after a change, so that several changes cause one call. */
const SOON_MS = 150;

const PAGE = 50;

export interface ListFilter {
  q: string;
  state: ConversationState | '';
}

export class ConversationList {
  readonly items = signal<Conversation[] | undefined>(undefined);
  readonly filter = signal<ListFilter>({ q: '', state: '' });
  readonly problem = signal<Problem | undefined>(undefined);
  readonly isSearching = signal(false);
  readonly nextCursor = signal<string | undefined>(undefined);
  /** The conversations that wait for a person, whatever the list is filtered by. */
  readonly waiting = signal<Conversation[]>([]);
  readonly waitingCount = computed(() => this.waiting.value.length);

  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStarted = false;
  private controller: AbortController | undefined;
  /** The number of items that the person has loaded. */
  private wanted = PAGE;

  start(): void {
    this.isStarted = true;
    void this.refresh();
  }

  stop(): void {
    this.isStarted = false;
    clearTimeout(this.timer);
    this.controller?.abort();
    this.items.value = undefined;
    this.waiting.value = [];
  }

  setFilter(filter: ListFilter): void {
    this.filter.value = filter;
    this.wanted = PAGE;
    this.isSearching.value = true;
    this.schedule(200);
  }

  refreshSoon(): void {
    this.schedule(SOON_MS);
  }

  async more(): Promise<void> {
    this.wanted += PAGE;
    await this.refresh();
  }

  replace(conversation: Conversation): void {
    this.items.value = this.items.value?.map((item) => (item.id === conversation.id ? conversation : item));
    this.refreshSoon();
  }

  remove(id: string): void {
    this.items.value = this.items.value?.filter((item) => item.id !== id);
  }

  async refresh(): Promise<void> {
    if (!this.isStarted) return;
    this.controller?.abort();
    const controller = new AbortController();
    this.controller = controller;
    try {
      const { q, state } = this.filter.value;
      const [found, waiting] = await Promise.all([
        api.conversations({ q, state, limit: Math.min(this.wanted, 500) }, controller.signal),
        api.conversations({ state: 'waiting', limit: PAGE }, controller.signal),
      ]);
      if (controller.signal.aborted) return;
      this.items.value = keepIdentity(this.items.value ?? [], found.items);
      this.waiting.value = keepIdentity(this.waiting.value, waiting.items);
      this.nextCursor.value = found.nextCursor;
      this.problem.value = undefined;
    } catch (error) {
      if (controller.signal.aborted) return;
      this.problem.value = asProblem(error);
    }
    this.isSearching.value = false;
    this.schedule(INTERVAL_MS);
  }

  private schedule(delay: number): void {
    clearTimeout(this.timer);
    if (!this.isStarted) return;
    this.timer = setTimeout(() => {
      // A hidden page does not ask; it asks when it is shown again.
      if (document.visibilityState === 'visible') void this.refresh();
    }, delay);
  }
}

/** Returns the new items, and the known object where nothing has changed, so that its row is not rendered again. */
function keepIdentity(before: Conversation[], after: Conversation[]): Conversation[] {
  const known = new Map(before.map((item) => [item.id, item]));
  const items = after.map((item) => {
    const old = known.get(item.id);
    return old !== undefined && JSON.stringify(old) === JSON.stringify(item) ? old : item;
  });
  const isSame = items.length === before.length && items.every((item, index) => item === before[index]);
  return isSame ? before : items;
}
