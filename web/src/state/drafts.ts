// What a person has typed and not sent. It survives reloads, sign-ins and failures.
//
// A draft keeps the key of its message: if the answer to a send is lost, the same send is repeated and is no second message.

import type { NewAttachment } from '../api/types';

export interface DraftAttachment extends NewAttachment {
  size: number;
}

export interface Draft {
  text: string;
  attachments: DraftAttachment[];
  /** The idempotency key of the message. It changes with the content. */
  key: string;
  /** The conversation that was created for a first message whose send has failed. */
  conversationId?: string;
  at: number;
}

/** Where drafts are kept: `localStorage`, or memory in tests. */
export interface DraftStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
  key(index: number): string | null;
  readonly length: number;
}

const PREFIX = 'teamster.draft.';

/** The number of drafts that are kept. The oldest one goes first. */
const MAX_DRAFTS = 50;

export class Drafts {
  /** Drafts of this tab, also if the storage is full or forbidden. */
  private memory = new Map<string, Draft>();

  constructor(
    private readonly storage: DraftStorage | undefined,
    private readonly newKey: () => string,
    private readonly now: () => number = Date.now,
  ) {}

  get(conversation: string): Draft {
    const known = this.memory.get(conversation) ?? this.read(conversation);
    return known ?? { text: '', attachments: [], key: this.newKey(), at: this.now() };
  }

  /** Saves a change. Another content is another message, with another key. */
  change(conversation: string, content: Partial<Pick<Draft, 'text' | 'attachments'>>): Draft {
    const before = this.get(conversation);
    const draft = { ...before, ...content, key: this.newKey(), at: this.now() };
    this.save(conversation, draft);
    return draft;
  }

  /** Saves the conversation that was created for this draft. The key stays. */
  setConversation(conversation: string, conversationId: string): void {
    this.save(conversation, { ...this.get(conversation), conversationId });
  }

  /** Saves the draft before it is sent, so that a repeated send has the same key. */
  keep(conversation: string, draft: Draft): void {
    this.save(conversation, draft);
  }

  /** Removes the draft that was accepted. A text that was typed since then stays. */
  clear(conversation: string, acceptedKey: string): boolean {
    if (this.get(conversation).key !== acceptedKey) return false;
    this.memory.delete(conversation);
    try {
      this.storage?.removeItem(PREFIX + conversation);
    } catch {
      // Nothing is left to remove.
    }
    return true;
  }

  private save(conversation: string, draft: Draft): void {
    this.memory.set(conversation, draft);
    try {
      if (draft.text === '' && draft.attachments.length === 0 && draft.conversationId === undefined) {
        this.storage?.removeItem(PREFIX + conversation);
      } else {
        this.storage?.setItem(PREFIX + conversation, JSON.stringify(draft));
        this.prune();
      }
    } catch {
      // The storage is full or forbidden: the draft is in memory.
    }
  }

  private read(conversation: string): Draft | undefined {
    try {
      return parseDraft(this.storage?.getItem(PREFIX + conversation) ?? null);
    } catch {
      return undefined;
    }
  }

  private prune(): void {
    const { storage } = this;
    if (storage === undefined) return;
    const keys: { key: string; at: number }[] = [];
    for (let index = 0; index < storage.length; index += 1) {
      const key = storage.key(index);
      if (key?.startsWith(PREFIX)) keys.push({ key, at: parseDraft(storage.getItem(key))?.at ?? 0 });
    }
    if (keys.length <= MAX_DRAFTS) return;
    keys.sort((one, other) => one.at - other.at);
    for (const { key } of keys.slice(0, keys.length - MAX_DRAFTS)) storage.removeItem(key);
  }
}

function parseDraft(json: string | null): Draft | undefined {
  if (json === null) return undefined;
  try {
    const draft = JSON.parse(json) as Partial<Draft>;
    if (typeof draft.text !== 'string' || typeof draft.key !== 'string') return undefined;
    const attachments = Array.isArray(draft.attachments) ? draft.attachments : [];
    return { text: draft.text, key: draft.key, attachments, conversationId: draft.conversationId, at: draft.at ?? 0 };
  } catch {
    return undefined;
  }
}
