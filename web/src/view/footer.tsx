// The end of a turn: its state, its error, its usage, and what can be done with it.

import { useContext } from 'preact/hooks';

import * as api from '../api/calls';
import { may, report } from '../state/app';
import { type Turn, isEnded } from '../state/model';
import { go } from '../state/route';
import { between, durationText } from '../tools/summary';
import { TranscriptContext } from './context';
import { CopyButton } from './copy';
import { Countdown, Elapsed } from './elapsed';
import { Icon } from './icons';
import { agentName, costText, dateTimeText, tokenText } from './titles';

export function FooterRow({ turn }: { turn: Turn }) {
  const scope = useContext(TranscriptContext);
  if (scope === undefined || turn.joinedInto !== undefined) return null;
  if (scope.open.isCopied(turn) && !isEnded(turn)) return <p class="turn-state muted">The fork was made before this turn ended.</p>;
  if (!isEnded(turn)) return <Progress turn={turn} isStopping={scope.open.stopping.value.has(turn.id)} />;
  return (
    <div class="turn-end">
      {turn.state === 'failed' && <Failure turn={turn} />}
      {turn.state === 'aborted' && <p class="turn-state"><Icon name="stop" />Stopped</p>}
      <div class="turn-meta">
        <Usage turn={turn} />
        <span class="actions">
          <CopyButton text={() => answerOf(turn)} label="Copy the answer" />
          {may.value.send && (
            <>
            {turn.state !== 'done' && !scope.open.isCopied(turn) && (
              <button type="button" class="text-button" onClick={() => void retry(turn)}><Icon name="retry" />Retry</button>
            )}
            <button type="button" class="icon-button small" title="Fork from here" aria-label="Fork from here" onClick={() => void fork(scope.open.id, turn)}>
              <Icon name="fork" />
            </button>
            </>
          )}
        </span>
      </div>
    </div>
  );
}

/** Returns the texts of a turn, without its tool calls. */
function answerOf(turn: Turn): string {
  return turn.blocks.flatMap((block) => (block.kind === 'text' ? [block.text.trim()] : [])).join('\n\n');
}

async function retry(turn: Turn): Promise<void> {
  try {
    await api.retryTurn(turn.id);
  } catch (error) {
    report('The turn could not be retried', error);
  }
}

async function fork(id: string, turn: Turn): Promise<void> {
  try {
    go({ name: 'conversation', id: (await api.forkConversation(id, turn.lastSeq)).id });
  } catch (error) {
    report('The fork could not be made', error);
  }
}

function Failure({ turn }: { turn: Turn }) {
  return (
    <div class="failure" role="group" aria-label="Error">
      <Icon name="warning" />
      <div>
        <strong>{nameOf(turn.error?.code)}</strong>{turn.error !== undefined && <span class="muted failure-code">{turn.error.code}</span>}
        {turn.error?.message !== undefined && turn.error.message !== '' && <div class="failure-text" dir="auto">{turn.error.message}</div>}
      </div>
    </div>
  );
}

/** Returns a code as words: `RATE_LIMIT` is "Rate limit". */
function nameOf(code: string | undefined): string {
  if (code === undefined || code === '') return 'The turn failed';
  const words = code.toLowerCase().replaceAll('_', ' ');
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

function Usage({ turn }: { turn: Turn }) {
  const { usage } = turn;
  const duration = durationText(usage?.durationMs ?? between(turn.startedAt, turn.endedAt));
  const parts = [
    turn.agent === undefined ? undefined : agentName(turn.agent),
    usage?.model ?? turn.model,
    duration,
    usage === undefined ? undefined : `${tokenText(usage.inputTokens)} in, ${tokenText(usage.outputTokens)} out`,
    usage?.costUsd === undefined ? undefined : costText(usage.costUsd),
    contextText(turn),
  ];
  return <span class="usage">{parts.filter(Boolean).map((part) => <span><bdi>{part}</bdi></span>)}</span>;
}

function contextText(turn: Turn): string | undefined {
  const context = turn.usage?.context;
  if (context?.windowTokens === undefined || context.windowTokens === 0) return undefined;
  const percent = Math.round((context.usedTokens / context.windowTokens) * 100);
  return percent < 1 ? undefined : `${percent}% of context`;
}

function Progress({ turn, isStopping }: { turn: Turn; isStopping: boolean }) {
  if (isStopping) return <p class="turn-state" aria-busy="true"><span class="spinner" />Stopping…</p>;
  switch (turn.state) {
    case 'queued':
      return <p class="turn-state muted"><Icon name="queue" />Queued</p>;
    case 'retrying':
      return <p class="turn-state warning"><Icon name="retry" />{`${turn.retryCode ?? 'Failed'}. `}<Countdown until={turn.resumesAt} text="Next attempt" /></p>;
    case 'paused':
      return <p class="turn-state warning"><Icon name="clock" />Rate limit. Continues at {dateTimeText(turn.resumesAt)}</p>;
    default:
      return (
        <p class="turn-state working">
          <span class="pulse" aria-hidden="true"><i /><i /><i /></span>
          <span class="off-screen">Working</span>
          {turn.attempt > 1 && <span>Attempt {turn.attempt}</span>}
          {turn.position !== undefined && <span>Position {turn.position} in the queue</span>}
          {turn.startedAt !== undefined && <Elapsed since={turn.startedAt} />}
        </p>
      );
  }
}
