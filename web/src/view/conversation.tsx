// A conversation: its head, its transcript, and what is above the keyboard: decisions, plan and composer.

import { useSignal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';

import { conversations, current, isOnline, report } from '../state/app';
import type { OpenConversation } from '../state/conversation';
import { type PlanBlock, turnsOf } from '../state/model';
import { Composer } from './composer';
import { sendWaiting } from './composerstate';
import { Countdown } from './elapsed';
import { ConversationHead } from './head';
import { Icon } from './icons';
import { PlanList, planText } from './plan';
import { Requests } from './requests';
import { ConversationChoices } from './settings';
import { agentName } from './titles';
import { Transcript } from './transcript';

export function CurrentConversation() {
  const open = current.value;
  return open === undefined ? <main class="view" /> : <ConversationView key={open.id} open={open} />;
}

function ConversationView({ open }: { open: OpenConversation }) {
  const problem = open.problem.value;
  const details = open.details.value;
  const connection = open.connection.value;
  useEffect(() => {
    if (connection.state === 'live') sendWaiting();
  }, [connection.state]);
  if (problem !== undefined) return <Missing open={open} />;
  const active = open.active.value;
  const isRunning = active !== undefined || open.queued.value.length > 0;
  const stopped = active ?? open.queued.value[0];
  const stop = () => {
    if (stopped !== undefined) open.stop(stopped.id).catch((error: unknown) => report('The turn could not be stopped', error));
  };
  return (
    <main class="view conversation" data-seq={open.log.value.last} data-live={connection.state === 'live' ? '' : undefined}>
      <ConversationHead open={open} />
      <ConnectionBar open={open} />
      <div class="transcript-area">
        {open.isLoaded.value || open.log.value.items.length > 0 ? <TranscriptOrEmpty open={open} /> : <Loading />}
      </div>
      <div class="dock">
        <Requests open={open} />
        <CurrentPlan open={open} />
        <Composer
          conversation={open.id} placeholder={details === undefined ? 'Message' : `Message ${agentName(details.agent)}`}
          isRunning={isRunning} isStopping={stopped !== undefined && open.stopping.value.has(stopped.id)} onStop={stop}
        >
          {details !== undefined && <ConversationChoices details={details} />}
        </Composer>
      </div>
    </main>
  );
}

function TranscriptOrEmpty({ open }: { open: OpenConversation }) {
  if (open.log.value.items.length === 0 && open.sent.value.length === 0 && open.log.value.first === 0) {
    return <div class="empty"><p class="muted">No messages yet.</p></div>;
  }
  return <Transcript open={open} />;
}

/** A placeholder, which appears only if loading takes long. */
function Loading() {
  return (
    <div class="skeleton transcript-skeleton" aria-busy="true" aria-label="Loading">
      {[45, 90, 80, 60, 85].map((width) => <div class={`skeleton-line w${width}`} />)}
    </div>
  );
}

function Missing({ open }: { open: OpenConversation }) {
  const problem = open.problem.value;
  const isGone = problem?.status === 404;
  return (
    <main class="view empty">
      <h1>{isGone ? 'This conversation does not exist' : 'The conversation cannot be loaded'}</h1>
      <p class="muted">{isGone ? 'It may have been deleted.' : problem?.message} {!isGone && <code>{problem?.code}</code>}</p>
      <div class="form-actions center">
        {!isGone && <button type="button" class="button primary" onClick={() => open.wake()}>Try again</button>}
        <a class="button" href="#/">New conversation</a>
      </div>
    </main>
  );
}

/** What is wrong with the connection, and what happens next. A short interruption is not worth a word. */
function ConnectionBar({ open }: { open: OpenConversation }) {
  const connection = open.connection.value;
  const [isLate, setLate] = useState(false);
  const isBroken = connection.state === 'waiting';
  useEffect(() => {
    if (!isBroken) {
      setLate(false);
      return undefined;
    }
    const timer = setTimeout(() => setLate(true), 700);
    return () => clearTimeout(timer);
  }, [isBroken]);
  if (connection.state !== 'waiting' || !isLate || !isOnline.value) return null;
  return (
    <div class="bar warning" role="status">
      <span>{connection.reason}</span>
      <Countdown until={new Date(connection.retryAt).toISOString()} text={`Attempt ${connection.attempt + 1}`} />
      <button type="button" class="text-button" onClick={() => { open.retryNow(); conversations.refreshSoon(); }}>Try now</button>
    </div>
  );
}

/** The plan of the running turn. */
function CurrentPlan({ open }: { open: OpenConversation }) {
  const isOpen = useSignal(false);
  const turn = open.active.value ?? turnsOf(open.log.value).at(-1);
  const plan = turn?.state === 'running' ? turn.blocks.find((block): block is PlanBlock => block.kind === 'plan') : undefined;
  if (plan === undefined || plan.entries.length === 0) return null;
  const now = plan.entries.find((entry) => entry.status === 'in_progress') ?? plan.entries.find((entry) => entry.status !== 'completed');
  return (
    <section class="card current-plan" aria-label="Plan">
      <button type="button" class="plan-line" aria-expanded={isOpen.value} onClick={() => { isOpen.value = !isOpen.value; }}>
        <Icon name="plan" />
        <span class="plan-now" dir="auto">{now?.content ?? 'All steps are done'}</span>
        <span class="muted plan-count">{planText(plan.entries)}</span>
        <span class="fold-mark"><Icon name="chevron" /></span>
      </button>
      {isOpen.value && <PlanList entries={plan.entries} />}
    </section>
  );
}
