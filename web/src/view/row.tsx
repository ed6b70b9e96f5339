// One row of the transcript.

import type { ComponentChildren } from 'preact';
import { memo } from 'preact/compat';
import { useContext } from 'preact/hooks';

import { MarkdownBlockView } from '../markdown/render';
import type { NoticeBlock, PlanEntry } from '../state/model';
import { outcomeText } from '../state/requests';
import { between, durationText } from '../tools/summary';
import { TranscriptContext } from './context';
import { FooterRow } from './footer';
import { Fold } from './fold';
import { Icon } from './icons';
import { MessageRow, PendingRow } from './message';
import { PlanList, planText } from './plan';
import type { Row } from './rows';
import { ToolRow } from './toolrow';

export const RowView = memo(
  function RowView({ row }: { row: Row }) {
    return <div class={`row row-${row.type}`} data-key={row.key}>{content(row)}</div>;
  },
  (before, after) => before.row === after.row,
);

function content(row: Row): ComponentChildren {
  switch (row.type) {
    case 'day':
      return <div class="day" role="separator"><span>{row.text}</span></div>;
    case 'message':
      return <MessageRow turn={row.turn} />;
    case 'pending':
      return <PendingRow sent={row.sent} />;
    case 'text':
      return (
        <div class="answer" data-block tabIndex={-1}>
          {row.blocks.map((block) => <MarkdownBlockView key={block.key} block={block} />)}
        </div>
      );
    case 'thinking':
      return <ThinkingRow row={row} />;
    case 'tool':
      return <ToolRow tool={row.block} />;
    case 'plan':
      return <PlanRow rowKey={row.key} entries={row.block.entries} />;
    case 'request':
      return <RequestRow requestId={row.block.requestId} />;
    case 'notice':
      return <NoticeRow notice={row.notice} />;
    case 'footer':
      return <FooterRow turn={row.turn} />;
  }
}

function ThinkingRow({ row }: { row: Extract<Row, { type: 'thinking' }> }) {
  const { block, isRunning } = row;
  const duration = durationText(between(block.at, block.endedAt));
  const line = isRunning ? 'Thinking…' : duration === '' || duration === '0 ms' ? 'Thought' : `Thought for ${duration}`;
  const lastLine = block.text.trimEnd().split('\n').at(-1) ?? '';
  return (
    <Fold
      rowKey={row.key} icon="thought" className={isRunning ? 'thinking running' : 'thinking'}
      line={<><span class="fold-verb">{line}</span>{isRunning && <span class="fold-subject" dir="auto">{lastLine.slice(-160)}</span>}</>}
      body={() => <div class="thinking-text" dir="auto">{block.text}</div>}
    />
  );
}

function PlanRow({ rowKey, entries }: { rowKey: string; entries: PlanEntry[] }) {
  return (
    <Fold
      rowKey={rowKey} icon="plan"
      line={<><span class="fold-verb">Plan</span><span class="fold-subject">{planText(entries)}</span></>}
      body={() => <PlanList entries={entries} />}
    />
  );
}

function RequestRow({ requestId }: { requestId: string }) {
  const scope = useContext(TranscriptContext);
  const request = scope?.open.log.value.requests[requestId];
  if (request === undefined) return null;
  const { answer, isQuestion } = request;
  // An open request is above the composer. The line of its tool call shows that it was allowed.
  if (answer === undefined || (request.toolId !== undefined && answer.decision.startsWith('allow'))) return null;
  const subject = isQuestion ? request.questions.map((question) => question.text).join(' ') : request.toolName;
  const outcome = outcomeText(answer, isQuestion);
  const isDenied = !['allow', 'allow_always'].includes(answer.decision);
  const reply = answer.message === undefined ? '' : isQuestion ? answersText(answer.message) : answer.message;
  return (
    <div class={`request-row ${isDenied ? 'denied' : ''}`} data-block tabIndex={-1}>
      <Icon name={isQuestion ? 'question' : 'shield'} />
      <span><strong>{outcome}</strong> <span class="muted" dir="auto">{subject}</span></span>
      {reply !== '' && <span class="request-reply" dir="auto">{reply}</span>}
    </div>
  );
}

/** Returns the answers to questions as one text. */
function answersText(message: string): string {
  try {
    const answers = JSON.parse(message) as Record<string, unknown>;
    return Object.values(answers).flat().map(String).join(', ');
  } catch {
    return message;
  }
}

const NOTICE_ICONS = { info: 'info', warning: 'warning', error: 'warning' } as const;

export function NoticeRow({ notice }: { notice: NoticeBlock }) {
  return (
    <div class={`notice ${notice.level}`} data-block tabIndex={-1}>
      <Icon name={NOTICE_ICONS[notice.level]} />
      <div class="notice-text">
        <span dir="auto">{notice.title}</span>
        {notice.text !== '' && <span class="muted notice-detail" dir="auto">{notice.text.slice(0, 4_000)}</span>}
      </div>
    </div>
  );
}
