// Events that are shown as one line: the gateway's notices, warnings, and types that this page does not know.

import { type LogEvent, object, optionalNumber, optionalText, text } from './events';
import type { NoticeBlock } from './model';

type Description = Pick<NoticeBlock, 'level' | 'title' | 'text'>;

const DESCRIPTIONS: Record<string, (event: LogEvent) => Description> = {
  turn_retrying: (event) => ({
    level: 'warning',
    title: `Attempt ${optionalNumber(event, 'attempt') ?? '?'} failed: ${text(event, 'code')}`,
    text: '',
  }),
  session_reset: (event) => ({ level: 'warning', title: 'The agent has a new session', text: text(event, 'reason') }),
  conversation_restarted: (event) => ({
    level: 'info', title: `Restarted by ${text(event, 'by')}`, text: 'The agent knows nothing of what was before.',
  }),
  delivery_failed: (event) => ({ level: 'error', title: 'A delivery failed', text: text(event, 'reason') }),
  schedule_skipped: (event) => ({
    level: 'info', title: `A scheduled time was skipped: ${text(event, 'at')}`, text: text(event, 'reason'),
  }),
  message_sent: (event) => ({
    level: 'info',
    title: `Sent to ${[text(event, 'channel'), text(event, 'chat'), text(event, 'thread')].filter(Boolean).join(' / ')}`,
    text: [text(event, 'text'), optionalText(object(event, 'file'), 'name')].filter(Boolean).join('\n'),
  }),
  hook_failed: (event) => ({ level: 'error', title: `The hook ${text(event, 'hook')} failed`, text: text(event, 'reason') }),
  notice: (event) => ({ level: 'info', title: text(event, 'text'), text: '' }),
  warning: (event) => ({ level: 'warning', title: text(event, 'message'), text: text(event, 'code') }),
  rate_limit: (event) => {
    const ends = optionalText(event, 'resetsAt');
    const kind = optionalText(event, 'kind');
    const status = text(event, 'status') === 'rejected' ? 'The rate limit is reached' : 'The rate limit is near';
    return { level: 'warning', title: kind === undefined ? status : `${status} (${kind})`, text: ends ? `It ends at ${ends}.` : '' };
  },
};

export function noticeOf(event: LogEvent): NoticeBlock {
  const describe = DESCRIPTIONS[event.type];
  if (describe !== undefined) return { kind: 'notice', key: `n${event.seq}`, at: event.at, ...describe(event) };
  const { seq, turnId, at, type, ...fields } = event;
  void turnId;
  return { kind: 'notice', key: `n${seq}`, at, level: 'info', title: type, text: JSON.stringify(fields) };
}

