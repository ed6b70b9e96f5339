// Permission requests and questions, directly above the composer. Only their own buttons and keys decide.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

import * as api from '../api/calls';
import { asProblem } from '../api/http';
import { may, report, toast } from '../state/app';
import type { OpenConversation } from '../state/conversation';
import type { Request } from '../state/model';
import { outcomeText } from '../state/requests';
import { editsOf } from '../tools/edits';
import { commandOf } from '../tools/summary';
import { DiffView, InputView } from '../tools/views';
import { Countdown } from './elapsed';
import { Icon } from './icons';
import { QuestionForm } from './questions';

export function Requests({ open }: { open: OpenConversation }) {
  const requests = open.requests.value;
  const first = requests[0];
  if (first === undefined) return null;
  return (
    <section class="requests" aria-label="Decisions">
      {requests.length > 1 && <p class="muted requests-count">{requests.length} requests wait for you</p>}
      {first.isQuestion ? (
        <QuestionForm key={first.id} request={first} onAnswer={(answer) => answerRequest(open, first, answer)} />
      ) : (
        <PermissionCard key={first.id} request={first} open={open} />
      )}
    </section>
  );
}

/** Answers a request. Returns whether it is answered now, by this person or by another one. */
export async function answerRequest(open: OpenConversation, request: Request, answer: api.PermissionAnswer): Promise<boolean> {
  try {
    await api.answerRequest(request.id, answer);
    open.forgetRequest(request.id);
    return true;
  } catch (error) {
    const problem = asProblem(error);
    if (problem.status !== 409) {
      report('The answer was not accepted', error);
      return false;
    }
    await showOther(request);
    open.forgetRequest(request.id);
    return true;
  }
}

/** Shows who has answered before. */
async function showOther(request: Request): Promise<void> {
  try {
    const { state, answeredBy, message } = await api.getPermissionRequest(request.id);
    const outcome = outcomeText({ decision: state, by: answeredBy, message, at: '' }, request.isQuestion);
    toast(`Your answer came too late. ${outcome}.`);
  } catch {
    toast('Your answer came too late: the request is closed.');
  }
}

const TITLES: Record<string, string> = {
  execute: 'Run this command?', edit: 'Make this change?', read: 'Read this?', search: 'Search here?', fetch: 'Open this address?',
};

function PermissionCard({ request, open }: { request: Request; open: OpenConversation }) {
  const isBusy = useSignal(false);
  const reason = useSignal<string | undefined>(undefined);
  const card = useRef<HTMLDivElement>(null);
  const decide = async (decision: 'allow' | 'allow_always' | 'deny') => {
    if (isBusy.value) return;
    isBusy.value = true;
    const message = reason.value?.trim();
    const isDone = await answerRequest(open, request, { decision, message: message === '' ? undefined : message });
    if (!isDone) isBusy.value = false;
  };
  useDecisionKeys(card, decide);
  const always = request.options.find((option) => option.kind === 'allow_always');
  return (
    <div class="card decision" ref={card} role="group" aria-labelledby={`title-${request.id}`} tabIndex={-1} data-request={request.id}>
      <div class="card-head">
        <Icon name="shield" />
        <h2 id={`title-${request.id}`}>{TITLES[request.toolKind] ?? 'Allow this?'}</h2>
        <span class="card-tool"><bdi>{request.toolName}</bdi></span>
        {request.deadline !== undefined && <span class="card-deadline"><Countdown until={request.deadline} text="Denied" /></span>}
      </div>
      <div class="card-body"><RequestBody request={request} /></div>
      {may.value.approve ? (
        <>
          {reason.value !== undefined && (
            <textarea
              class="reason" rows={2} dir="auto" autofocus aria-label="Message for the agent" placeholder="What should the agent do instead?"
              value={reason.value} onInput={(event) => { reason.value = event.currentTarget.value; }}
            />
          )}
          <div class="card-actions">
            <button type="button" class="button primary" disabled={isBusy.value} onClick={() => void decide('allow')}>Allow once</button>
            {always !== undefined && (
              <button type="button" class="button" disabled={isBusy.value} title={always.name} onClick={() => void decide('allow_always')}>Always allow</button>
            )}
            <button type="button" class="button danger" disabled={isBusy.value} onClick={() => void decide('deny')}>Deny</button>
            {reason.value === undefined && (
              <button type="button" class="text-button" onClick={() => { reason.value = ''; }}>Add a message</button>
            )}
          </div>
        </>
      ) : <p class="muted">Your token may not answer requests.</p>}
    </div>
  );
}

/** A and D decide only while the focus is inside the card, and not in its text field. */
function useDecisionKeys(card: { current: HTMLDivElement | null }, decide: (decision: 'allow' | 'deny') => void): void {
  const latest = useRef(decide);
  latest.current = decide;
  useEffect(() => {
    const element = card.current;
    const onKey = (event: KeyboardEvent) => {
      if (event.target instanceof HTMLTextAreaElement || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
      const key = event.key.toLowerCase();
      if (key === 'a' || key === 'd') {
        event.preventDefault();
        event.stopPropagation();
        latest.current(key === 'a' ? 'allow' : 'deny');
      }
    };
    element?.addEventListener('keydown', onKey);
    return () => element?.removeEventListener('keydown', onKey);
  }, []);
}

function asCall(request: Request) {
  return { name: request.toolName, server: request.server, toolKind: request.toolKind, input: request.input };
}

function RequestBody({ request }: { request: Request }) {
  const call = asCall(request);
  const command = commandOf(call);
  const edits = request.toolKind === 'edit' ? editsOf(call) : [];
  const leaveOut = command !== undefined ? ['command', 'cmd'] : edits.length > 0 ? EDIT_FIELDS : [];
  return (
    <>
      {command !== undefined && <pre class="command-text" tabIndex={0} dir="ltr" aria-label="Command"><code>{command}</code></pre>}
      {edits.map((edit) => <DiffView edit={edit} />)}
      <InputView input={request.input} leaveOut={leaveOut} />
      {request.permission !== undefined && <p class="muted">Permission: <code>{request.permission}</code></p>}
      {request.targets.length > 0 && command === undefined && edits.length === 0 && (
        <p class="targets">{request.targets.map((target) => <code><bdi>{target}</bdi></code>)}</p>
      )}
    </>
  );
}

const EDIT_FIELDS = [
  'file_path', 'filePath', 'path', 'old_string', 'oldString', 'new_string', 'newString', 'edits', 'changes', 'patch', 'patchText',
  'content', 'diff', 'replace_all', 'replaceAll',
];
