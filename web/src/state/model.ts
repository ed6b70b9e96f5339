// What the page shows of a conversation. It is made from its log alone, by `reduce`.

export type TurnState = 'queued' | 'running' | 'retrying' | 'paused' | 'done' | 'failed' | 'aborted';

export interface PlanEntry {
  content: string;
  status: string;
}

export interface TextBlock {
  kind: 'text' | 'thinking';
  key: string;
  messageId: string;
  text: string;
  at: string;
  endedAt?: string;
}

export interface ToolBlock {
  kind: 'tool';
  key: string;
  toolId: string;
  name: string;
  server?: string;
  toolKind: string;
  input: unknown;
  /** Output while the tool runs. The result replaces it. */
  output: string;
  result?: { output: string; isError: boolean; exitCode?: number; content?: unknown[] };
  /** Its turn ended before its result. */
  isCut: boolean;
  decision?: { decision: string; by: string };
  startedAt: string;
  endedAt?: string;
  /** The blocks of the subagent that the tool has started. */
  children: Block[];
}

export interface RequestBlock {
  kind: 'request';
  key: string;
  requestId: string;
}

export interface PlanBlock {
  kind: 'plan';
  key: string;
  entries: PlanEntry[];
}

export interface NoticeBlock {
  kind: 'notice';
  key: string;
  level: 'info' | 'warning' | 'error';
  title: string;
  text: string;
  at: string;
}

export type Block = TextBlock | ToolBlock | RequestBlock | PlanBlock | NoticeBlock;

export interface QuestionItem {
  id: string;
  text: string;
  multiple: boolean;
  options: { label: string; description?: string }[];
}

export interface Request {
  id: string;
  turnId?: string;
  isQuestion: boolean;
  toolId?: string;
  toolName: string;
  toolKind: string;
  server?: string;
  input: unknown;
  targets: string[];
  permission?: string;
  options: { kind: string; name: string }[];
  questions: QuestionItem[];
  deadline?: string;
  at: string;
  answer?: { decision: string; by?: string; message?: string; at: string };
}

export interface TurnUsage {
  inputTokens: number;
  outputTokens: number;
  costUsd?: number;
  durationMs?: number;
  model?: string;
  context?: { usedTokens: number; windowTokens?: number };
}

export interface Turn {
  kind: 'turn';
  id: string;
  /** The number of its first event that is loaded. */
  seq: number;
  /** The number of its last event. */
  lastSeq: number;
  /** Its beginning is not loaded, or retention has deleted it. */
  isPartial: boolean;
  messageId?: string;
  author: string;
  text: string;
  attachments: string[];
  scheduleId?: string;
  isEdited: boolean;
  state: TurnState;
  attempt: number;
  agent?: string;
  worker?: string;
  model?: string;
  queuedAt?: string;
  startedAt?: string;
  endedAt?: string;
  /** The running turn into which the message went. */
  joinedInto?: string;
  blocks: Block[];
  error?: { code: string; message: string };
  /** The next attempt of a turn that is retried, or the end of a pause. */
  resumesAt?: string;
  retryCode?: string;
  position?: number;
  usage?: TurnUsage;
  isClosed: boolean;
}

export interface NoticeItem {
  kind: 'notice';
  seq: number;
  notice: NoticeBlock;
}

export type Item = Turn | NoticeItem;

export interface LogState {
  /** The number of the first event. 0 before there is one. */
  first: number;
  /** The number of the last event. */
  last: number;
  items: Item[];
  requests: Readonly<Record<string, Request>>;
}

export const emptyLog: LogState = { first: 0, last: 0, items: [], requests: {} };

/** Returns an empty state that continues after this event. */
export function logAfter(seq: number): LogState {
  return { ...emptyLog, last: seq };
}

export function turnsOf(state: LogState): Turn[] {
  return state.items.filter((item): item is Turn => item.kind === 'turn');
}

export function openRequests(state: LogState): Request[] {
  return Object.values(state.requests).filter((request) => request.answer === undefined);
}

/** Returns the turn that runs or is about to continue. */
export function activeTurn(state: LogState): Turn | undefined {
  return turnsOf(state).find((turn) => ['running', 'retrying', 'paused'].includes(turn.state) && !turn.joinedInto);
}

export function isEnded(turn: Turn): boolean {
  return turn.state === 'done' || turn.state === 'failed' || turn.state === 'aborted';
}
