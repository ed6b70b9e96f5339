// The frame of the page: sidebar, main part, and what lies above both.

import { useComputed } from '@preact/signals';
import { useEffect } from 'preact/hooks';

import { announcement } from '../state/announce';
import {
  bootProblem, conversations, current, dismissToast, hasNewBuild, isHelpOpen, isOnline, isSidebarOpen, loadSession, session,
  toasts,
} from '../state/app';
import { route } from '../state/route';
import { Help } from './help';
import { Icon } from './icons';
import { LazyView } from './lazy';
import { NewConversation } from './new';
import { Sidebar } from './sidebar';
import { SignIn } from './signin';
import { titleOf } from './titles';

export function App() {
  useTitle();
  if (session.value === undefined) return <Booting />;
  return (
    <>
      {session.value === null && <SignIn />}
      <div class="shell" data-sidebar={isSidebarOpen.value ? 'open' : undefined} inert={session.value === null || isHelpOpen.value}>
        {hasComposer() && <a class="skip-link" href="#composer" onClick={skipToComposer}>Skip to the message field</a>}
        <Sidebar />
        {isSidebarOpen.value && <div class="scrim" onClick={() => { isSidebarOpen.value = false; }} />}
        <div class="main">
          <Bars />
          <Main />
        </div>
      </div>
      {isHelpOpen.value && <Help />}
      <Toasts />
      <div class="off-screen" role="status" aria-live="polite">{announcement.value}</div>
    </>
  );
}

function hasComposer(): boolean {
  return (route.value.name === 'new' || route.value.name === 'conversation') && current.value?.problem.value === undefined;
}

function skipToComposer(event: Event): void {
  event.preventDefault();
  document.getElementById('composer')?.focus();
}

function Main() {
  const to = route.value;
  switch (to.name) {
    case 'conversation':
      return current.value === undefined ? <main class="view" /> : <LazyView key={to.id} name="conversation" />;
    case 'usage':
      return <LazyView name="usage" />;
    case 'operate':
      return <LazyView name="operate" />;
    default:
      return <NewConversation />;
  }
}

/** Slim lines above everything: no network, or a new build of the page. */
function Bars() {
  return (
    <>
      {!isOnline.value && (
        <div class="bar warning" role="status">You are offline. What you write is saved, and sent when the connection is back.</div>
      )}
      {hasNewBuild.value && (
        <div class="bar" role="status">
          The gateway has a new version of this page.
          <button type="button" class="text-button" onClick={() => location.reload()}>Reload</button>
        </div>
      )}
    </>
  );
}

function Booting() {
  if (bootProblem.value === undefined) {
    return <div class="booting" aria-busy="true"><span class="spinner" role="img" aria-label="Loading" /></div>;
  }
  return (
    <main class="booting">
      <h1>The gateway does not answer</h1>
      <p class="muted">{bootProblem.value}</p>
      <button type="button" class="button primary" onClick={() => void loadSession()}>Try again</button>
    </main>
  );
}

function Toasts() {
  return (
    <div class="toasts" role="region" aria-label="Messages">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={toast.isError ? 'toast error' : 'toast'} role={toast.isError ? 'alert' : 'status'}>
          <span>{toast.text}</span>
          <button type="button" class="icon-button small" aria-label="Dismiss" onClick={() => dismissToast(toast.id)}>
            <Icon name="cross" />
          </button>
        </div>
      ))}
    </div>
  );
}

/** The title of the tab shows how many conversations wait for a person. */
function useTitle(): void {
  const title = useComputed(() => {
    const to = route.value;
    const details = current.value?.details.value;
    const names = { new: 'New conversation', usage: 'Usage', operate: 'Operation' };
    const name = to.name === 'conversation' ? (details === undefined ? 'Conversation' : titleOf(details)) : names[to.name];
    const count = conversations.waitingCount.value;
    return `${count > 0 ? `(${count}) ` : ''}${name} · Teamster`;
  });
  useEffect(() => {
    document.title = title.value;
  }, [title.value]);
}
