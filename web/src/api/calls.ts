// The calls of the API that the page makes.

import { call } from './http';
import type {
  Accepted, Agent, AuditEntry, Conversation, Delivery, List, NewAttachment, PermissionRequest, Schedule, Session, Status,
  TurnDetails, UsageList,
} from './types';

function query(values: Record<string, string | number | undefined>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== '') parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

const conversation = (id: string) => `/v1/conversations/${encodeURIComponent(id)}`;
const turn = (id: string) => `/v1/turns/${encodeURIComponent(id)}`;

export const session = () => call<Session>('/v1/session', { isLogin: true });

/** Exchanges a token for a cookie that scripts cannot read. */
export const logIn = (token: string) =>
  call<Session>('/v1/session', { method: 'POST', isLogin: true, headers: { Authorization: `Bearer ${token}` } });

export const logOut = () => call<void>('/v1/session', { method: 'DELETE', isLogin: true });

export const agents = () => call<List<Agent>>('/v1/agents');

export interface ConversationFilter {
  q?: string;
  state?: string;
  agent?: string;
  channel?: string;
  cursor?: string;
  limit?: number;
}

export const conversations = (filter: ConversationFilter = {}, signal?: AbortSignal) =>
  call<List<Conversation>>(`/v1/conversations${query({ ...filter })}`, { signal });

export const getConversation = (id: string) => call<Conversation>(conversation(id));

export interface ConversationSettings {
  agent?: string;
  model?: string | null;
  permission?: string | null;
  title?: string | null;
}

export const createConversation = (settings: ConversationSettings) =>
  call<Conversation>('/v1/conversations', { body: withoutEmpty(settings) });

export const updateConversation = (id: string, settings: ConversationSettings) =>
  call<Conversation>(conversation(id), { method: 'PATCH', body: settings });

export const deleteConversation = (id: string) => call<void>(conversation(id), { method: 'DELETE' });

export const forkConversation = (id: string, afterSeq?: number) =>
  call<Conversation>(`${conversation(id)}/fork`, { body: afterSeq === undefined ? {} : { afterSeq } });

export const resumeConversation = (id: string) => call<Conversation>(`${conversation(id)}/resume`, { method: 'POST' });

export interface NewMessage {
  text: string;
  attachments?: NewAttachment[];
  mode?: 'queue' | 'steer';
}

export const sendMessage = (id: string, message: NewMessage, key: string) =>
  call<Accepted>(`${conversation(id)}/messages`, { body: message, headers: { 'Idempotency-Key': key } });

export const getTurn = (id: string) => call<TurnDetails>(turn(id));
export const abortTurn = (id: string) => call<TurnDetails>(`${turn(id)}/abort`, { method: 'POST' });
export const retryTurn = (id: string) => call<TurnDetails>(`${turn(id)}/retry`, { method: 'POST' });

export const permissionRequests = (filter: { state?: string; conversationId?: string; limit?: number }) =>
  call<List<PermissionRequest>>(`/v1/permission-requests${query({ ...filter })}`);

export const getPermissionRequest = (id: string) =>
  call<PermissionRequest>(`/v1/permission-requests/${encodeURIComponent(id)}`);

export interface PermissionAnswer {
  decision: 'allow' | 'allow_always' | 'deny';
  message?: string;
  answers?: Record<string, string[]>;
}

export const answerRequest = (id: string, answer: PermissionAnswer) =>
  call<PermissionRequest>(`/v1/permission-requests/${encodeURIComponent(id)}/answer`, { body: answer });

export const uploadFile = (file: Blob, signal?: AbortSignal) =>
  call<{ hash: string; size: number }>('/v1/files', { body: file, signal });

export const usage = (by: string, filter: { days?: number; conversationId?: string; limit?: number; cursor?: string } = {}) =>
  call<UsageList>(`/v1/usage${query({ by, ...filter })}`);

export const status = () => call<Status>('/v1/status');

export const deliveries = (state: string, cursor?: string) =>
  call<List<Delivery>>(`/v1/deliveries${query({ state, cursor, limit: 100 })}`);

export const retryDelivery = (id: string) =>
  call<Delivery>(`/v1/deliveries/${encodeURIComponent(id)}/retry`, { method: 'POST' });

export const audit = (cursor?: string) => call<List<AuditEntry>>(`/v1/audit${query({ cursor, limit: 200 })}`);

export const schedules = () => call<List<Schedule>>('/v1/schedules?limit=200');

export const deleteSchedule = (id: string) =>
  call<void>(`/v1/schedules/${encodeURIComponent(id)}`, { method: 'DELETE' });

/** Returns the build of the page that the gateway serves now. */
export const pageBuild = () => call<{ build: string }>('/page-build.json', { isLogin: true });

function withoutEmpty(settings: ConversationSettings): ConversationSettings {
  const entries = Object.entries(settings).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return Object.fromEntries(entries) as ConversationSettings;
}
