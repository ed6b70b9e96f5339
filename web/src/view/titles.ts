// Names of conversations and agents, and times, for people.

import type { Conversation } from '../api/types';

const AGENTS: Record<string, string> = { claude: 'Claude Code', codex: 'Codex', gemini: 'Gemini CLI', opencode: 'OpenCode' };

export function agentName(name: string): string {
  return AGENTS[name] ?? name;
}

export function titleOf(conversation: Conversation): string {
  const title = conversation.title?.trim();
  if (title !== undefined && title !== '') return title;
  if (conversation.channel === 'http') return 'Untitled conversation';
  return [conversation.channel, conversation.chat, conversation.thread].filter(Boolean).join(' / ');
}

/** Returns the title of a conversation that starts with this message. */
export function titleFrom(text: string): string {
  const line = text.trim().split('\n').find((one) => one.trim() !== '')?.trim() ?? '';
  const plain = line.replace(/^[#>\-*\s]+/, '').replace(/[`*_]/g, '');
  return plain.length > 80 ? `${plain.slice(0, 79).trimEnd()}…` : plain;
}

export function timeText(at: string | undefined): string {
  if (at === undefined) return '';
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '' : date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
}

export function dateTimeText(at: string | undefined): string {
  if (at === undefined) return '';
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '' : date.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
}

/** Returns the age of a time: `now`, `5 min`, `3 h`, `2 d`, or a date. */
export function ageText(at: string, now = Date.now()): string {
  const seconds = (now - Date.parse(at)) / 1_000;
  if (!Number.isFinite(seconds)) return '';
  if (seconds < 60) return 'now';
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`;
  if (seconds < 7 * 86_400) return `${Math.floor(seconds / 86_400)} d`;
  return new Date(at).toLocaleDateString([], { month: 'short', day: 'numeric' });
}

export function dayText(at: string, now = new Date()): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return '';
  if (date.toDateString() === now.toDateString()) return 'Today';
  const yesterday = new Date(now);
  yesterday.setDate(now.getDate() - 1);
  if (date.toDateString() === yesterday.toDateString()) return 'Yesterday';
  const isThisYear = date.getFullYear() === now.getFullYear();
  return date.toLocaleDateString([], { weekday: 'long', day: 'numeric', month: 'long', year: isThisYear ? undefined : 'numeric' });
}

export function costText(dollars: number): string {
  if (dollars === 0) return '$0';
  if (dollars < 0.01) return `$${dollars.toFixed(4)}`;
  return dollars < 100 ? `$${dollars.toFixed(2)}` : `$${Math.round(dollars).toLocaleString('en')}`;
}

export function tokenText(tokens: number): string {
  if (tokens < 1_000) return String(tokens);
  if (tokens < 100_000) return `${(tokens / 1_000).toFixed(1)}k`;
  if (tokens < 1_000_000) return `${Math.round(tokens / 1_000)}k`;
  return `${(tokens / 1_000_000).toFixed(1)}M`;
}

export function sizeText(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  if (bytes < 1_048_576) return `${Math.round(bytes / 1_024)} KB`;
  if (bytes < 1_073_741_824) return `${(bytes / 1_048_576).toFixed(1)} MB`;
  return `${(bytes / 1_073_741_824).toFixed(1)} GB`;
}
