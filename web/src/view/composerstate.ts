// What the composer of each conversation contains, and what became of its last send.

import { signal } from '@preact/signals';

import * as api from '../api/calls';
import { type Problem, asProblem } from '../api/http';
import { conversations, current, drafts } from '../state/app';
import type { Draft, DraftAttachment } from '../state/drafts';
import { go } from '../state/route';
import { titleFrom } from './titles';

/** The draft of a conversation that does not exist yet. */
export const NEW = 'new';

export interface ComposerState {
  draft: Draft;
  isSending: boolean;
  problem?: Problem;
  /** The message is sent as soon as the gateway can be reached again. */
  isWaiting: boolean;
  uploads: { name: string; id: number }[];
  mode: 'queue' | 'steer';
}

/** The settings of a new conversation. */
export interface NewSettings {
  agent?: string;
  model?: string;
  permission?: string;
}

export const newSettings = signal<NewSettings>({});

const states = new Map<string, ReturnType<typeof signal<ComposerState>>>();

export function composerOf(conversation: string) {
  let state = states.get(conversation);
  if (state === undefined) {
    state = signal<ComposerState>({
      draft: drafts.get(conversation), isSending: false, isWaiting: false, uploads: [], mode: 'queue',
    });
    states.set(conversation, state);
  }
  return state as { value: ComposerState };
}

function change(conversation: string, changes: Partial<ComposerState>): void {
  const state = composerOf(conversation);
  state.value = { ...state.value, ...changes };
}

/** Replaces the text. The draft is saved at once. */
export function composerText(conversation: string, text: string): void {
  change(conversation, { draft: drafts.change(conversation, { text }), isWaiting: false, problem: undefined });
}

export function removeAttachment(conversation: string, index: number): void {
  const { draft } = composerOf(conversation).value;
  setAttachments(conversation, draft.attachments.filter((_, other) => other !== index));
}

function setAttachments(conversation: string, attachments: DraftAttachment[]): void {
  change(conversation, { draft: drafts.change(conversation, { attachments }), isWaiting: false });
}

let nextUpload = 1;

/** The largest number of files of a message. */
const MAX_FILES = 32;

/** Uploads files, and adds them to the draft. */
export async function attach(conversation: string, files: Iterable<File>): Promise<void> {
  await Promise.all([...files].slice(0, MAX_FILES).map((file) => attachOne(conversation, file)));
}

async function attachOne(conversation: string, file: File): Promise<void> {
  const id = nextUpload++;
  const name = file.name === '' ? 'file' : file.name;
  change(conversation, { uploads: [...composerOf(conversation).value.uploads, { name, id }], problem: undefined });
  try {
    const { hash, size } = await api.uploadFile(file);
    const mediaType = /^[!-.0-~]+\/[!-.0-~]+$/.test(file.type) ? file.type : 'application/octet-stream';
    const { attachments } = composerOf(conversation).value.draft;
    setAttachments(conversation, [...attachments, { hash, size, name, mediaType }]);
  } catch (error) {
    const problem = asProblem(error);
    problem.message = `${name} could not be attached: ${problem.message}`;
    change(conversation, { problem });
  } finally {
    change(conversation, { uploads: composerOf(conversation).value.uploads.filter((upload) => upload.id !== id) });
  }
}

export function isEmpty({ draft }: ComposerState): boolean {
  return draft.text.trim() === '' && draft.attachments.length === 0;
}

/** Sends the draft. It is removed only when the gateway has accepted it. */
export async function send(conversation: string, mode: 'queue' | 'steer'): Promise<void> {
  const state = composerOf(conversation).value;
  if (state.isSending || isEmpty(state) || state.uploads.length > 0) return;
  const { draft } = state;
  drafts.keep(conversation, draft);
  change(conversation, { isSending: true, isWaiting: false, problem: undefined, mode });
  try {
    const id = conversation === NEW ? await createFor(draft) : conversation;
    const attachments = draft.attachments.map(({ hash, name, mediaType }) => ({ hash, name, mediaType }));
    const accepted = await api.sendMessage(id, { text: draft.text, attachments, mode }, draft.key);
    drafts.clear(conversation, draft.key);
    change(conversation, { isSending: false, draft: drafts.get(conversation) });
    if (conversation === NEW) go({ name: 'conversation', id });
    const open = current.value;
    if (open?.id === id) {
      open.addSent({ ...accepted, text: draft.text, attachments: draft.attachments.map((file) => file.name) });
    }
    conversations.refreshSoon();
  } catch (error) {
    const problem = asProblem(error);
    change(conversation, { isSending: false, problem, isWaiting: problem.isUnreachable });
  }
}

/** Creates the conversation of a first message, once. */
async function createFor(draft: Draft): Promise<string> {
  const known = drafts.get(NEW).conversationId;
  if (known !== undefined) return known;
  const { agent, model, permission } = newSettings.value;
  const title = titleFrom(draft.text) || draft.attachments[0]?.name;
  const created = await api.createConversation({ agent, model, permission, title });
  drafts.setConversation(NEW, created.id);
  return created.id;
}

/** Sends the messages that wait for the gateway. */
export function sendWaiting(): void {
  for (const [conversation, state] of states) {
    if (state.value?.isWaiting === true) void send(conversation, state.value.mode);
  }
}

export function keepForLater(conversation: string): void {
  change(conversation, { isWaiting: false, problem: undefined });
}
