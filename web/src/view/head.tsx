// The head of a conversation: its title, its agent, its usage, and what can be done with it.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

import * as api from '../api/calls';
import type { Usage } from '../api/types';
import { conversations, may, report, toast, updated } from '../state/app';
import type { OpenConversation } from '../state/conversation';
import { turnsOf, isEnded } from '../state/model';
import { go, hashOf } from '../state/route';
import { Icon } from './icons';
import { MenuButton } from './menubutton';
import { StateMark } from './sidebar';
import { agentName, costText, titleOf, tokenText } from './titles';

export function ConversationHead({ open }: { open: OpenConversation }) {
  const details = open.details.value;
  const isRenaming = useSignal(false);
  if (details === undefined) return <header class="head"><MenuButton /></header>;
  const fork = details.forkedFrom;
  return (
    <header class="head">
      <MenuButton />
      <div class="head-title">
        {isRenaming.value ? (
          <Rename open={open} onClose={() => { isRenaming.value = false; }} />
        ) : (
          <h1 dir="auto" title={titleOf(details)}>{titleOf(details)}</h1>
        )}
        <p class="head-meta">
          <StateMark state={details.state} />
          <span>{agentName(details.agent)}</span>
          {details.model !== undefined && <span><bdi>{details.model}</bdi></span>}
          {details.channel !== 'http' && <span>{details.channel}</span>}
          {details.directory !== undefined && <span class="head-directory" title={details.directory}><bdi>{details.directory}</bdi></span>}
          {fork !== undefined && <a href={hashOf({ name: 'conversation', id: fork.conversationId })}>Fork of another conversation</a>}
        </p>
      </div>
      <TotalUsage open={open} />
      <Menu open={open} onRename={() => { isRenaming.value = true; }} />
    </header>
  );
}

function Rename({ open, onClose }: { open: OpenConversation; onClose: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  const save = async () => {
    const title = field.current?.value.trim() ?? '';
    onClose();
    try {
      updated(await api.updateConversation(open.id, { title: title === '' ? null : title }));
    } catch (error) {
      report('The title was not changed', error);
    }
  };
  return (
    <form class="rename" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <input
        ref={field} aria-label="Title" maxLength={500} dir="auto" defaultValue={open.details.value?.title ?? ''}
        onKeyDown={(event) => { if (event.key === 'Escape') onClose(); }}
      />
      <button type="submit" class="icon-button small" aria-label="Save the title"><Icon name="check" /></button>
    </form>
  );
}

/** Tokens and cost of the conversation, read again when a turn has ended. */
function TotalUsage({ open }: { open: OpenConversation }) {
  const total = useSignal<Usage | undefined>(undefined);
  const ended = turnsOf(open.log.value).filter((turn) => isEnded(turn)).length;
  useEffect(() => {
    let isCurrent = true;
    api.usage('conversation', { conversationId: open.id, days: 366 }).then(
      (found) => { if (isCurrent) total.value = found.total; },
      () => undefined,
    );
    return () => { isCurrent = false; };
  }, [open.id, ended]);
  if (total.value === undefined || total.value.inputTokens + total.value.outputTokens === 0) return null;
  const { inputTokens, outputTokens, costUsd } = total.value;
  return (
    <a class="head-usage" href="#/usage" title={`${inputTokens.toLocaleString('en')} input and ${outputTokens.toLocaleString('en')} output tokens`}>
      {costUsd > 0 ? costText(costUsd) : `${tokenText(inputTokens + outputTokens)} tokens`}
    </a>
  );
}

function Menu({ open, onRename }: { open: OpenConversation; onRename: () => void }) {
  const isOpen = useSignal(false);
  const isDeleting = useSignal(false);
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen.value) return undefined;
    const close = (event: Event) => {
      if (!menu.current?.contains(event.target as Node)) isOpen.value = false;
    };
    document.addEventListener('pointerdown', close);
    return () => document.removeEventListener('pointerdown', close);
  }, [isOpen.value]);
  const run = (action: () => void) => () => {
    isOpen.value = false;
    action();
  };
  const remove = async () => {
    try {
      await api.deleteConversation(open.id);
      conversations.remove(open.id);
      go({ name: 'new' }, { replace: true });
      toast('The conversation is deleted.');
    } catch (error) {
      report('The conversation was not deleted', error);
    }
  };
  return (
    <div class="head-menu" ref={menu} onKeyDown={(event) => { if (event.key === 'Escape') isOpen.value = false; }}>
      <button
        type="button" class="icon-button" aria-label="More" aria-haspopup="true" aria-expanded={isOpen.value}
        onClick={() => { isOpen.value = !isOpen.value; isDeleting.value = false; }}
      >
        <Icon name="more" />
      </button>
      {isOpen.value && (
        <div class="menu">
          {may.value.send && <button type="button" class="menu-item" onClick={run(onRename)}><Icon name="edit" />Rename</button>}
          {may.value.send && <button type="button" class="menu-item" onClick={run(() => void forkAll(open.id))}><Icon name="fork" />Fork</button>}
          {open.details.value?.state === 'paused' && (
            <button type="button" class="menu-item" onClick={run(() => void resume(open.id))}><Icon name="retry" />End the pause</button>
          )}
          {may.value.send && (
            <button type="button" class="menu-item danger" onClick={isDeleting.value ? run(() => void remove()) : () => { isDeleting.value = true; }}>
              <Icon name="trash" />{isDeleting.value ? 'Delete for good?' : 'Delete'}
            </button>
          )}
        </div>
      )}
    </div>
  );
}

async function forkAll(id: string): Promise<void> {
  try {
    go({ name: 'conversation', id: (await api.forkConversation(id)).id });
  } catch (error) {
    report('The fork could not be made', error);
  }
}

async function resume(id: string): Promise<void> {
  try {
    updated(await api.resumeConversation(id));
  } catch (error) {
    report('The pause was not ended', error);
  }
}
