// The list of conversations with search, filters and the places of the page.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { memo } from 'preact/compat';

import type { Conversation, ConversationState } from '../api/types';
import { conversations, isHelpOpen, isSidebarOpen, may, session, signOut } from '../state/app';
import { type Route, hashOf, route } from '../state/route';
import { type Theme, setTheme, theme } from '../state/theme';
import { Icon, type IconName } from './icons';
import { ageText, agentName, dayText, titleOf } from './titles';

export function Sidebar() {
  const to = route.value;
  return (
    <nav class="sidebar" aria-label="Conversations">
      <div class="sidebar-head">
        <a class="brand" href="#/" aria-label="Teamster: new conversation"><span class="brand-mark" aria-hidden="true"><Icon name="terminal" /></span>Teamster</a>
        <button type="button" class="icon-button only-narrow" aria-label="Close the list" onClick={() => { isSidebarOpen.value = false; }}>
          <Icon name="cross" />
        </button>
      </div>
      <a class="button new-button" href="#/" aria-current={to.name === 'new' ? 'page' : undefined}>
        <Icon name="plus" />New conversation
      </a>
      <Search />
      <List />
      <div class="sidebar-foot">
        <Place to={{ name: 'usage' }} icon="chart" text="Usage" />
        {may.value.operate && <Place to={{ name: 'operate', tab: 'overview', filter: {} }} icon="gauge" text="Operation" />}
        <Account />
      </div>
    </nav>
  );
}

function Place({ to, icon, text }: { to: Route; icon: IconName; text: string }) {
  return (
    <a class="place" href={hashOf(to)} aria-current={route.value.name === to.name ? 'page' : undefined}>
      <Icon name={icon} />{text}
    </a>
  );
}

const STATES: { value: ConversationState | ''; text: string }[] = [
  { value: '', text: 'All' },
  { value: 'waiting', text: 'Needs you' },
  { value: 'running', text: 'Running' },
  { value: 'queued', text: 'Queued' },
  { value: 'paused', text: 'Paused' },
  { value: 'idle', text: 'Idle' },
];

function Search() {
  const { filter, waitingCount } = conversations;
  return (
    <div class="search" role="search">
      <div class="search-field">
        <Icon name="search" />
        <input
          id="search" type="search" placeholder="Search" aria-label="Search conversations" value={filter.value.q} dir="auto"
          onInput={(event) => conversations.setFilter({ ...filter.value, q: event.currentTarget.value })}
        />
      </div>
      <div class="chips" role="group" aria-label="Filter by state">
        {STATES.slice(0, 3).map(({ value, text }) => (
          <button
            type="button" class="chip" aria-pressed={filter.value.state === value}
            onClick={() => conversations.setFilter({ ...filter.value, state: value })}
          >
            {text}
            {value === 'waiting' && waitingCount.value > 0 && <span class="count">{waitingCount.value}</span>}
          </button>
        ))}
      </div>
    </div>
  );
}

function List() {
  const { items, problem, filter, isSearching, nextCursor } = conversations;
  const list = items.value;
  const id = route.value.name === 'conversation' ? route.value.id : undefined;
  if (list === undefined) {
    return <div class="conversation-list">{problem.value === undefined ? <Skeleton /> : <p class="list-note">{problem.value.message}</p>}</div>;
  }
  const isFiltered = filter.value.q !== '' || filter.value.state !== '';
  if (list.length === 0) {
    return (
      <div class="conversation-list">
        <p class="list-note">{isFiltered ? 'No conversation matches.' : 'Conversations appear here.'}</p>
      </div>
    );
  }
  let day = '';
  return (
    <div class="conversation-list" aria-busy={isSearching.value}>
      {problem.value !== undefined && <p class="list-note" role="status">Not up to date: {problem.value.message}</p>}
      <ul>
        {list.map((conversation) => {
          const next = dayText(conversation.createdAt);
          const heading = next === day ? undefined : next;
          day = next;
          return <Entry key={conversation.id} conversation={conversation} isCurrent={conversation.id === id} heading={heading} />;
        })}
      </ul>
      {nextCursor.value !== undefined && (
        <button type="button" class="text-button more" onClick={() => void conversations.more()}>Show more</button>
      )}
    </div>
  );
}

/** A placeholder, which appears only if the list takes long. */
function Skeleton() {
  return <div class="skeleton" aria-hidden="true">{[70, 90, 55, 80, 62].map((width) => <div class={`skeleton-line w${width}`} />)}</div>;
}

const STATE_TEXTS: Record<ConversationState, string> = {
  idle: '', queued: 'Queued', running: 'Running', waiting: 'Needs you', paused: 'Paused',
};

const Entry = memo(function Entry({ conversation, isCurrent, heading }: { conversation: Conversation; isCurrent: boolean; heading?: string }) {
  const title = titleOf(conversation);
  const stateText = STATE_TEXTS[conversation.state] ?? conversation.state;
  return (
    <li>
      {heading !== undefined && <h2 class="list-heading">{heading}</h2>}
      <a class="entry" href={hashOf({ name: 'conversation', id: conversation.id })} aria-current={isCurrent ? 'page' : undefined} data-state={conversation.state}>
        <span class="entry-title" dir="auto">{title}</span>
        <span class="entry-meta">
          <StateMark state={conversation.state} />
          {stateText !== '' && <span class="entry-state">{stateText}</span>}
          <span class="entry-agent">{agentName(conversation.agent)}{conversation.channel !== 'http' && ` · ${conversation.channel}`}</span>
          <span class="entry-age">{ageText(conversation.createdAt)}</span>
        </span>
      </a>
    </li>
  );
});

export function StateMark({ state }: { state: ConversationState }) {
  if (state === 'idle') return null;
  return <span class={`state-mark ${state}`} aria-hidden="true" />;
}

function Account() {
  const isOpen = useSignal(false);
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen.value) return undefined;
    const close = (event: Event) => {
      if (!menu.current?.contains(event.target as Node)) isOpen.value = false;
    };
    document.addEventListener('pointerdown', close);
    return () => document.removeEventListener('pointerdown', close);
  }, [isOpen.value]);
  return (
    <div class="account" ref={menu} onKeyDown={(event) => { if (event.key === 'Escape') isOpen.value = false; }}>
      <button type="button" class="place" aria-expanded={isOpen.value} aria-haspopup="true" onClick={() => { isOpen.value = !isOpen.value; }}>
        <span class="avatar" aria-hidden="true">{(session.value?.owner ?? '?').slice(0, 1).toUpperCase()}</span>
        <span class="account-name"><bdi>{session.value?.owner}</bdi></span>
        <Icon name="more" />
      </button>
      {isOpen.value && (
        <div class="menu up">
          <ThemeChoice />
          <button type="button" class="menu-item" onClick={() => { isOpen.value = false; isHelpOpen.value = true; }}>
            <Icon name="keyboard" />Keyboard
          </button>
          <button type="button" class="menu-item" onClick={() => void signOut()}><Icon name="exit" />Sign out</button>
        </div>
      )}
    </div>
  );
}

const THEMES: { value: Theme; text: string; icon: IconName }[] = [
  { value: 'auto', text: 'System', icon: 'auto' },
  { value: 'light', text: 'Light', icon: 'sun' },
  { value: 'dark', text: 'Dark', icon: 'moon' },
];

function ThemeChoice() {
  return (
    <div class="segments" role="group" aria-label="Colors">
      {THEMES.map(({ value, text, icon }) => (
        <button type="button" aria-pressed={theme.value === value} onClick={() => setTheme(value)}><Icon name={icon} />{text}</button>
      ))}
    </div>
  );
}
