// What the whole page shares: who is signed in, the list of conversations, the open one, messages for the person.

import { computed, effect, signal } from '@preact/signals';

import * as api from '../api/calls';
import { asProblem, onUnauthorized } from '../api/http';
import type { Agent, Conversation, Session } from '../api/types';
import { OpenConversation } from './conversation';
import { Drafts } from './drafts';
import { ConversationList } from './list';
import { parseRoute, route } from './route';

/** `undefined` while it is unknown, `null` without a session. */
export const session = signal<Session | null | undefined>(undefined);
/** Why it is unknown whether there is a session. */
export const bootProblem = signal<string | undefined>(undefined);
export const agents = signal<Agent[] | undefined>(undefined);
export const current = signal<OpenConversation | undefined>(undefined);
export const isOnline = signal(true);
export const hasNewBuild = signal(false);
export const isSidebarOpen = signal(false);
export const isHelpOpen = signal(false);

export const drafts = new Drafts(storage(), () => crypto.randomUUID?.() ?? randomKey());
export const conversations = new ConversationList();

function storage(): Storage | undefined {
  try {
    return window.localStorage;
  } catch {
    return undefined;
  }
}

/** A page without TLS has no `randomUUID`. */
function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Short messages at the edge of the page. */
export interface Toast {
  id: number;
  text: string;
  isError: boolean;
}

export const toasts = signal<Toast[]>([]);
let nextToast = 1;

export function toast(text: string, isError = false): void {
  const id = nextToast++;
  toasts.value = [...toasts.value.slice(-3), { id, text, isError }];
  setTimeout(() => dismissToast(id), isError ? 12_000 : 6_000);
}

export function dismissToast(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

/** Reports the failure of an action of the person. */
export function report(action: string, error: unknown): void {
  const problem = asProblem(error);
  if (problem.status !== 401) toast(`${action}: ${problem.message}`, true);
}

export const may = computed(() => {
  const scopes = session.value?.scopes ?? [];
  const isAdmin = scopes.includes('admin');
  return {
    send: isAdmin || scopes.includes('send'),
    approve: isAdmin || scopes.includes('approve'),
    operate: isAdmin,
  };
});

export async function boot(): Promise<void> {
  onUnauthorized(() => {
    if (session.value) session.value = null;
  });
  const readRoute = () => {
    route.value = parseRoute(location.hash);
  };
  window.addEventListener('hashchange', readRoute);
  await logInByFragment();
  readRoute();
  followRoute();
  await loadSession();
}

/** A link with the token in its fragment signs in. The fragment is never sent, and is removed at once. */
async function logInByFragment(): Promise<void> {
  const token = /^#token=([^&]+)/.exec(location.hash)?.[1];
  if (token === undefined) return;
  history.replaceState(null, '', location.pathname);
  try {
    await api.logIn(decodeURIComponent(token));
  } catch (error) {
    bootProblem.value = asProblem(error).message;
  }
}

export async function loadSession(): Promise<void> {
  bootProblem.value = undefined;
  try {
    session.value = await api.session();
    signedIn();
  } catch (error) {
    const problem = asProblem(error);
    if (problem.status === 401) session.value = null;
    else bootProblem.value = problem.message;
  }
}

/** Continues where the page was before the sign-in. */
export function signedIn(): void {
  conversations.start();
  void loadAgents();
  current.value?.wake();
}

export async function loadAgents(): Promise<void> {
  try {
    agents.value = (await api.agents()).items;
  } catch {
    // The choice of an agent is empty until the next attempt.
  }
}

export async function signOut(): Promise<void> {
  try {
    await api.logOut();
  } catch (error) {
    report('Signing out failed', error);
    return;
  }
  session.value = null;
  current.value?.close();
  current.value = undefined;
  conversations.stop();
}

/** Opens the conversation of the address. */
function followRoute(): void {
  effect(() => {
    const to = route.value;
    const isSignedIn = session.value !== undefined && session.value !== null;
    const open = current.peek();
    const wanted = to.name === 'conversation' ? to.id : undefined;
    if (open !== undefined && open.id !== wanted) {
      open.close();
      current.value = undefined;
    }
    if (wanted !== undefined && isSignedIn && current.peek()?.id !== wanted) {
      const next = new OpenConversation(wanted);
      next.onChange = () => conversations.refreshSoon();
      current.value = next;
      void next.open();
    }
    isSidebarOpen.value = false;
  });
}

/** Replaces the details of a conversation everywhere. */
export function updated(conversation: Conversation): void {
  if (current.value?.id === conversation.id) current.value.details.value = conversation;
  conversations.replace(conversation);
}
