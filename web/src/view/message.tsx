// A person's message, with its attachments and what can be done with it.

import { useContext, useRef } from 'preact/hooks';
import { useSignal } from '@preact/signals';

import * as api from '../api/calls';
import { current, drafts, may, report, session, toast } from '../state/app';
import type { SentMessage } from '../state/conversation';
import type { Turn } from '../state/model';
import { go } from '../state/route';
import { composerText } from './composerstate';
import { TranscriptContext, folds, setFold } from './context';
import { CopyButton } from './copy';
import { Icon } from './icons';
import { timeText } from './titles';

/** Longer messages are shown in part. */
const LONG = 3_000;

export function MessageRow({ turn }: { turn: Turn }) {
  const isEditing = useSignal(false);
  const scope = useContext(TranscriptContext);
  const own = turn.author === session.value?.owner || turn.author === '';
  const isCopied = scope?.open.isCopied(turn) === true;
  return (
    <article class="message" data-block tabIndex={-1} aria-label={`Message of ${turn.author === '' ? 'a person' : turn.author}`}>
      {(!own || turn.scheduleId !== undefined) && (
        <div class="message-author">
          {turn.scheduleId !== undefined && <><Icon name="clock" />Schedule · </>}<bdi>{turn.author}</bdi>
        </div>
      )}
      {isEditing.value ? (
        <EditForm turn={turn} onClose={() => { isEditing.value = false; }} />
      ) : (
        <div class="bubble"><MessageText text={turn.text} rowKey={`t${turn.id}`} /><Attachments turn={turn} /></div>
      )}
      {!isEditing.value && (
        <div class="message-meta">
          {turn.isEdited && <span>Edited</span>}
          {turn.joinedInto !== undefined && <span>Went into the running turn</span>}
          <span class="actions">
            <CopyButton text={turn.text} label="Copy message" />
            {may.value.send && (
              <button
                type="button" class="icon-button small" data-action="edit" title={turn.state === 'queued' ? 'Edit: takes it out of the queue' : 'Edit and send in a fork'}
                aria-label={turn.state === 'queued' ? 'Edit the queued message' : 'Edit and send in a fork'}
                onClick={() => { if (turn.state === 'queued' && !isCopied) void unqueue(turn); else isEditing.value = true; }}
              >
                <Icon name="edit" />
              </button>
            )}
          </span>
          <time dateTime={turn.queuedAt}>{timeText(turn.queuedAt)}</time>
        </div>
      )}
    </article>
  );
}

export function MessageText({ text, rowKey }: { text: string; rowKey: string }) {
  const isWhole = folds.value.get(rowKey) ?? false;
  if (text.length <= LONG || isWhole) return <div class="message-text" dir="auto">{text}</div>;
  return (
    <div class="message-text" dir="auto">
      {text.slice(0, LONG)}…
      <button type="button" class="text-button" onClick={() => setFold(rowKey, true)}>
        Show all ({text.length.toLocaleString('en')} characters)
      </button>
    </div>
  );
}

/** Takes a message out of the queue and into the composer. */
async function unqueue(turn: Turn): Promise<void> {
  const open = current.value;
  if (open === undefined) return;
  try {
    await api.abortTurn(turn.id);
    const before = drafts.get(open.id).text;
    composerText(open.id, before.trim() === '' ? turn.text : `${turn.text}\n\n${before}`);
  } catch (error) {
    report('The message could not be taken out of the queue', error);
  }
}

function EditForm({ turn, onClose }: { turn: Turn; onClose: () => void }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const isBusy = useSignal(false);
  const send = async () => {
    const open = current.value;
    const text = field.current?.value ?? '';
    if (open === undefined || text.trim() === '' || isBusy.value) return;
    isBusy.value = true;
    try {
      const fork = await api.forkConversation(open.id, Math.max(0, turn.seq - 1));
      // The text is saved before it is sent, so that a failure loses nothing.
      const draft = drafts.change(fork.id, { text });
      await api.sendMessage(fork.id, { text }, draft.key);
      drafts.clear(fork.id, draft.key);
      go({ name: 'conversation', id: fork.id });
    } catch (error) {
      isBusy.value = false;
      report('The fork could not be made', error);
    }
  };
  return (
    <form class="edit-form" onSubmit={(event) => { event.preventDefault(); void send(); }}>
      <textarea
        ref={field} aria-label="Edited message" dir="auto" defaultValue={turn.text} rows={Math.min(12, turn.text.split('\n').length + 1)}
        autofocus onKeyDown={(event) => { if (event.key === 'Escape') onClose(); }}
      />
      <p class="muted">It is sent in a fork: a new conversation with everything before this message.</p>
      <div class="form-actions">
        <button type="button" class="button" onClick={onClose}>Cancel</button>
        <button type="submit" class="button primary" disabled={isBusy.value}><Icon name="fork" />Send in a fork</button>
      </div>
    </form>
  );
}

function Attachments({ turn }: { turn: Turn }) {
  if (turn.attachments.length === 0) return null;
  return (
    <div class="attachments">
      {turn.attachments.map((name, index) => (
        <button type="button" class="attachment" title={`Download ${name}`} onClick={() => void download(turn, index)}>
          <Icon name="file" /><bdi>{name}</bdi>
        </button>
      ))}
    </div>
  );
}

async function download(turn: Turn, index: number): Promise<void> {
  try {
    const file = (await api.getTurn(turn.id)).message.attachments?.[index];
    if (file === undefined) {
      toast('The file is not there any more.', true);
      return;
    }
    const link = document.createElement('a');
    link.href = `/v1/files/${encodeURIComponent(file.hash)}`;
    link.download = file.name;
    link.click();
  } catch (error) {
    report('The file could not be downloaded', error);
  }
}

/** A message that is accepted, and whose event has not arrived yet. */
export function PendingRow({ sent }: { sent: SentMessage }) {
  return (
    <article class="message pending" aria-label="Your message">
      <div class="bubble">
        <div class="message-text" dir="auto">{sent.text}</div>
        {sent.attachments.length > 0 && (
          <div class="attachments">{sent.attachments.map((name) => <span class="attachment"><Icon name="file" /><bdi>{name}</bdi></span>)}</div>
        )}
      </div>
    </article>
  );
}
