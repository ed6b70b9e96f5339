// What the HTTP API returns, as far as the page uses it. Unknown fields and values are allowed everywhere.

export type ConversationState = 'idle' | 'queued' | 'running' | 'waiting' | 'paused';

export type Permission = 'read-only' | 'ask' | 'edit' | 'full';

export interface Conversation {
  id: string;
  channel: string;
  chat: string;
  thread?: string;
  agent: string;
  title?: string;
  model?: string;
  permission?: Permission;
  directory?: string;
  forkedFrom?: { conversationId: string; seq: number };
  state: ConversationState;
  queued: number;
  lastSeq: number;
  oldestSeq: number;
  worker?: string;
  pausedUntil?: string;
  version: number;
  createdAt: string;
}

export interface List<T> {
  items: T[];
  nextCursor?: string;
}

export interface Capability {
  support: 'yes' | 'ignored' | 'refused';
  note: string;
}

export interface Agent {
  name: string;
  version?: string;
  testedVersion?: string;
  available: boolean;
  isDefault: boolean;
  problem?: string;
  capabilities: Record<string, Capability>;
}

export interface Session {
  owner: string;
  scopes: string[];
}

export interface Accepted {
  messageId: string;
  turnId: string;
  seq: number;
}

export interface NewAttachment {
  hash: string;
  name: string;
  mediaType: string;
}

export interface StoredFile extends NewAttachment {
  size: number;
}

export interface TurnDetails {
  id: string;
  conversationId: string;
  message: { id: string; author: string; text: string; attachments?: StoredFile[]; at: string };
  state: string;
  attempts: number;
  abortRequested: boolean;
  usage: Usage;
  seq: number;
}

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  costUsd: number;
}

export interface UsageItem {
  day?: string;
  agent?: string;
  conversationId?: string;
  author?: string;
  usage: Usage;
}

export interface UsageList extends List<UsageItem> {
  total: Usage;
}

export interface PermissionRequest {
  id: string;
  conversationId: string;
  turnId: string;
  state: string;
  request: Record<string, unknown>;
  requestedAt: string;
  deadline: string;
  answeredBy?: string;
  message?: string;
}

export interface Status {
  version: string;
  worker: string;
  conversations: number;
  queuedTurns: number;
  runningTurns: number;
  expiredLeases: number;
  openPermissionRequests: number;
  pendingDeliveries: number;
  failedDeliveries: number;
  waitingSince?: string;
  storeBytes: number;
  subscribers: number;
}

export interface Delivery {
  id: string;
  channel: string;
  chat: string;
  conversationId?: string;
  turnId?: string;
  state: string;
  attempts: number;
  error?: string;
  createdAt: string;
}

export interface AuditEntry {
  number: number;
  at: string;
  actor: string;
  action: string;
  subject: string;
  origin: string;
}

export interface Schedule {
  id: string;
  conversationId: string;
  cron?: string;
  at?: string;
  timeZone: string;
  text: string;
  author: string;
  nextAt?: string;
  lastAt?: string;
}
