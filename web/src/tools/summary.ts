// How a tool call is shown in one line: an icon, a verb and a subject. Agents name their tools and arguments differently.

import { asObject } from '../state/events';
import type { ToolBlock } from '../state/model';
import type { IconName } from '../view/icons';

export interface ToolSummary {
  icon: IconName;
  verb: string;
  subject: string;
  /** The subject is a path or a command. */
  isCode: boolean;
}

const ICONS: Record<string, IconName> = {
  execute: 'terminal', edit: 'edit', read: 'eye', search: 'search', fetch: 'globe', mcp: 'plug', agent: 'agent',
};

/** What a call does, and what it has done. */
const VERBS: Record<string, [string, string]> = {
  execute: ['Runs', 'Ran'], edit: ['Edits', 'Edited'], read: ['Reads', 'Read'], search: ['Searches', 'Searched'],
  fetch: ['Fetches', 'Fetched'], agent: ['Delegates', 'Delegated'],
};

/** Tools of agents whose effect the page shows in another place. */
const SPECIAL: Record<string, Pick<ToolSummary, 'icon' | 'verb'>> = {
  AskUserQuestion: { icon: 'question', verb: 'Asked' },
};

/** The arguments that name what a call is about, the best first. */
const SUBJECTS = [
  'command', 'cmd', 'file_path', 'filePath', 'path', 'absolute_path', 'notebook_path', 'pattern', 'query', 'url', 'description',
  'prompt', 'name',
];

type Call = Pick<ToolBlock, 'name' | 'server' | 'toolKind' | 'input'>;

export function summaryOf(tool: Call, isRunning = false): ToolSummary {
  const special = SPECIAL[tool.name];
  if (special !== undefined) return { ...special, subject: '', isCode: false };
  const input = asObject(tool.input);
  const subject = subjectOf(tool, input);
  const isKnown = tool.toolKind in VERBS;
  const name = tool.server === undefined ? tool.name : `${tool.server} / ${tool.name}`;
  return {
    icon: ICONS[tool.toolKind] ?? 'tool',
    verb: VERBS[tool.toolKind]?.[isRunning ? 0 : 1] ?? name,
    subject: oneLine(subject === '' && isKnown ? name : subject),
    isCode: ['execute', 'edit', 'read'].includes(tool.toolKind),
  };
}

function subjectOf(tool: Call, input: Record<string, unknown>): string {
  if (typeof tool.input === 'string') return tool.input;
  const changes = input['changes'];
  if (Array.isArray(changes)) {
    const paths = changes.map((change) => asObject(change)['path']).filter((path) => typeof path === 'string');
    if (paths.length > 0) return paths.join(', ');
  }
  for (const field of SUBJECTS) {
    const value = input[field];
    if (typeof value === 'string' && value.trim() !== '') return value;
    if (Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === 'string')) return value.join(' ');
  }
  const first = Object.values(input).find((value) => typeof value === 'string' && value !== '');
  return typeof first === 'string' ? first : '';
}

/** Returns the beginning of a text in one line. */
export function oneLine(text: string, limit = 300): string {
  const line = text.slice(0, limit * 4).replace(/\s+/g, ' ').trim();
  return line.length > limit ? `${line.slice(0, limit)}…` : line;
}

/** Returns the command of a shell call. */
export function commandOf(tool: Call): string | undefined {
  if (tool.toolKind !== 'execute') return undefined;
  const input = asObject(tool.input);
  for (const field of ['command', 'cmd']) {
    const value = input[field];
    if (typeof value === 'string') return value;
    if (Array.isArray(value)) return value.join(' ');
  }
  return undefined;
}

/** Returns a short duration, for example `340 ms`, `12 s` or `3 min 20 s`. */
export function durationText(milliseconds: number): string {
  if (!Number.isFinite(milliseconds) || milliseconds < 0) return '';
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function between(start: string | undefined, end: string | undefined): number {
  return start === undefined || end === undefined ? Number.NaN : Date.parse(end) - Date.parse(start);
}
