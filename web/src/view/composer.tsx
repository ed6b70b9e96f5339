// The message field: text, files, and the buttons that send, steer and stop.

import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

import { may } from '../state/app';
import {
  type ComposerState, attach, composerOf, composerText, isEmpty, keepForLater, removeAttachment, send,
} from './composerstate';
import { Icon } from './icons';
import { sizeText } from './titles';

export interface ComposerProps {
  conversation: string;
  placeholder: string;
  /** A turn runs: a message is queued, or goes into it. */
  isRunning?: boolean;
  isStopping?: boolean;
  onStop?: () => void;
  /** Choices below the text. */
  children?: ComponentChildren;
}

export function Composer(props: ComposerProps) {
  const { conversation, isRunning } = props;
  const state = composerOf(conversation).value;
  const field = useRef<HTMLTextAreaElement>(null);
  const isDropping = useSignal(false);
  useFieldHeight(field, state.draft.text);
  useFocus(field, conversation);
  if (!may.value.send) return <p class="composer-note muted">Your token may read, but not send messages.</p>;
  const submit = (mode: 'queue' | 'steer') => void send(conversation, mode);
  const onKeyDown = (event: KeyboardEvent) => {
    // The Enter of an input method confirms its text.
    if (event.key !== 'Enter' || event.isComposing || event.keyCode === 229) return;
    if (event.shiftKey || event.altKey) return;
    event.preventDefault();
    submit((event.ctrlKey || event.metaKey) && isRunning === true ? 'steer' : 'queue');
  };
  const take = (files: FileList | undefined | null) => {
    if (files !== undefined && files !== null && files.length > 0) void attach(conversation, files);
  };
  return (
    <div class="composer-area">
      <SendProblem conversation={conversation} state={state} />
      <form
        class="composer" data-dropping={isDropping.value ? '' : undefined} onSubmit={(event) => { event.preventDefault(); submit('queue'); }}
        onDragOver={(event) => { if (hasFiles(event)) { event.preventDefault(); isDropping.value = true; } }}
        onDragLeave={() => { isDropping.value = false; }}
        onDrop={(event) => { isDropping.value = false; if (hasFiles(event)) { event.preventDefault(); take(event.dataTransfer?.files); } }}
      >
        <DraftFiles conversation={conversation} state={state} />
        <textarea
          id="composer" ref={field} rows={1} dir="auto" placeholder={props.placeholder} aria-label="Message" enterkeyhint="send"
          value={state.draft.text} readOnly={state.isSending} aria-busy={state.isSending}
          onInput={(event) => composerText(conversation, event.currentTarget.value)} onKeyDown={onKeyDown}
          onPaste={(event) => { if (event.clipboardData?.files.length) { event.preventDefault(); take(event.clipboardData.files); } }}
        />
        <div class="composer-bar">
          <AttachButton onFiles={take} />
          <div class="composer-choices">{props.children}</div>
          <Buttons {...props} state={state} onSend={submit} />
        </div>
        {isDropping.value && <div class="drop-note" aria-hidden="true"><Icon name="attach" />Drop files to attach them</div>}
      </form>
    </div>
  );
}

function hasFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes('Files') === true;
}

/** Lets the field grow with its text. */
function useFieldHeight(field: { current: HTMLTextAreaElement | null }, text: string): void {
  useLayoutEffect(() => {
    const element = field.current;
    if (element === null) return;
    element.style.height = 'auto';
    element.style.height = `${element.scrollHeight}px`;
  }, [text]);
}

/** A pointer can place the cursor at once; on a phone the keyboard would cover the page. */
function useFocus(field: { current: HTMLTextAreaElement | null }, conversation: string): void {
  useEffect(() => {
    if (window.matchMedia('(pointer: fine)').matches) field.current?.focus({ preventScroll: true });
  }, [conversation]);
}

function AttachButton({ onFiles }: { onFiles: (files: FileList | null) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class="icon-button" title="Attach files" aria-label="Attach files" onClick={() => input.current?.click()}>
        <Icon name="attach" />
      </button>
      <input
        ref={input} type="file" multiple hidden aria-label="Files"
        onChange={(event) => { onFiles(event.currentTarget.files); event.currentTarget.value = ''; }}
      />
    </>
  );
}

function DraftFiles({ conversation, state }: { conversation: string; state: ComposerState }) {
  const { attachments } = state.draft;
  if (attachments.length === 0 && state.uploads.length === 0) return null;
  return (
    <ul class="attachments draft" aria-label="Attached files">
      {attachments.map((file, index) => (
        <li class="attachment">
          <Icon name="file" /><bdi>{file.name}</bdi><span class="muted">{sizeText(file.size)}</span>
          <button type="button" class="icon-button small" aria-label={`Remove ${file.name}`} onClick={() => removeAttachment(conversation, index)}>
            <Icon name="cross" />
          </button>
        </li>
      ))}
      {state.uploads.map((upload) => <li class="attachment" aria-busy="true"><span class="spinner" /><bdi>{upload.name}</bdi></li>)}
    </ul>
  );
}

function Buttons(props: ComposerProps & { state: ComposerState; onSend: (mode: 'queue' | 'steer') => void }) {
  const { state, isRunning, isStopping, onStop, onSend } = props;
  const cannotSend = isEmpty(state) || state.isSending || state.uploads.length > 0;
  const isIdle = isRunning !== true;
  return (
    <div class="composer-buttons">
      {!isIdle && !isEmpty(state) && (
        <button type="button" class="button" disabled={cannotSend} title="Send it into the running turn (Ctrl+Enter)" onClick={() => onSend('steer')}>
          <Icon name="steer" />Steer
        </button>
      )}
      {!isIdle && !isEmpty(state) && (
        <button type="submit" class="button" disabled={cannotSend} title="Send it as the next turn (Enter)"><Icon name="queue" />Queue</button>
      )}
      {!isIdle && onStop !== undefined && (
        <button type="button" class="button stop" disabled={isStopping} title="Stop (Esc twice)" onClick={onStop}>
          <Icon name="stop" />{isStopping === true ? 'Stopping…' : 'Stop'}
        </button>
      )}
      {isIdle && (
        <button type="submit" class="send" disabled={cannotSend} title="Send (Enter)" aria-label="Send">
          {state.isSending ? <span class="spinner" /> : <Icon name="send" />}
        </button>
      )}
    </div>
  );
}

function SendProblem({ conversation, state }: { conversation: string; state: ComposerState }) {
  const { problem, isWaiting } = state;
  if (problem === undefined || problem.status === 401) return null;
  return (
    <div class="send-problem" role="alert">
      <Icon name="warning" />
      <span>
        {isWaiting ? 'Not sent yet: the gateway cannot be reached. It is sent when the connection is back.' : `Not sent: ${problem.message}`}
        {!isWaiting && <span class="muted"> {problem.code}</span>}
      </span>
      <button type="button" class="text-button" onClick={() => void send(conversation, state.mode)}>Try now</button>
      {isWaiting && <button type="button" class="text-button" onClick={() => keepForLater(conversation)}>Keep as a draft</button>}
    </div>
  );
}
