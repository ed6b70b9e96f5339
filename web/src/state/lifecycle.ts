// The page's life in its browser: shown, hidden, asleep, offline, and older than its server.

import { effect } from '@preact/signals';

import { pageBuild } from '../api/calls';
import { conversations, current, hasNewBuild, isOnline, session } from './app';

/** A hidden page holds its connection for this long. Browsers allow six connections to a host. */
export const HIDDEN_MS = 60_000;

let ownBuild: string | undefined;

export function watchLifecycle(): void {
  let hiddenTimer: ReturnType<typeof setTimeout> | undefined;
  const wake = () => {
    clearTimeout(hiddenTimer);
    if (document.visibilityState !== 'visible' || !session.value) return;
    current.value?.wake();
    void conversations.refresh();
    void checkBuild();
  };
  const change = () => {
    if (document.visibilityState === 'visible') wake();
    else hiddenTimer = setTimeout(() => current.value?.pause(), HIDDEN_MS);
  };
  document.addEventListener('visibilitychange', change);
  window.addEventListener('pageshow', wake);
  const online = () => {
    isOnline.value = navigator.onLine;
    if (navigator.onLine) {
      current.value?.retryNow();
      wake();
    }
  };
  window.addEventListener('online', online);
  window.addEventListener('offline', online);
  isOnline.value = navigator.onLine;
  watchKeyboard();
  void checkBuild();
  // A gateway that comes back may be another release.
  effect(() => {
    if (current.value?.connection.value.state === 'live') void checkBuild();
  });
}

/** Keeps the message field above the keyboard of browsers that lay it over the page instead of making the page smaller. */
function watchKeyboard(): void {
  const { visualViewport } = window;
  if (visualViewport === null) return;
  const measure = () => {
    const covered = Math.max(0, window.innerHeight - visualViewport.height * visualViewport.scale - visualViewport.offsetTop);
    document.documentElement.style.setProperty('--keyboard', `${Math.round(covered)}px`);
  };
  visualViewport.addEventListener('resize', measure);
  visualViewport.addEventListener('scroll', measure);
}

async function checkBuild(): Promise<void> {
  try {
    const { build } = await pageBuild();
    ownBuild ??= build;
    if (build !== ownBuild) hasNewBuild.value = true;
  } catch {
    // The next connection checks again.
  }
}
