// The keys of the page. Single letters have no effect in text fields, and can be switched off.

import { signal } from '@preact/signals';

import { conversations, current, isHelpOpen, isSidebarOpen, report } from '../state/app';
import { go, route } from '../state/route';
import { readSetting, writeSetting } from '../state/theme';

const SETTING = 'teamster.single-keys';

/** The longest time between two presses of Escape. */
const TWICE_MS = 800;

export const hasSingleKeys = signal(readSetting(SETTING) !== 'off');

export function setSingleKeys(isOn: boolean): void {
  hasSingleKeys.value = isOn;
  writeSetting(SETTING, isOn ? undefined : 'off');
}

let lastEscape = 0;

export function watchKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
    if (isHelpOpen.value) return;
    if (handleCombination(event) || handleSingle(event)) event.preventDefault();
  });
}

function handleCombination(event: KeyboardEvent): boolean {
  const isControl = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (isControl && !event.shiftKey && key === 'k') {
    isSidebarOpen.value = true;
    focus('search');
    return true;
  }
  if (isControl && event.shiftKey && key === 'o') {
    go({ name: 'new' });
    focus('composer');
    return true;
  }
  if (event.altKey && (event.key === 'ArrowUp' || event.key === 'ArrowDown')) return openNeighbor(event.key === 'ArrowUp' ? -1 : 1);
  if (event.key === 'Escape') {
    if (isSidebarOpen.value) {
      isSidebarOpen.value = false;
      return true;
    }
    return stopOnSecond();
  }
  return false;
}

function stopOnSecond(): boolean {
  const now = Date.now();
  const isSecond = now - lastEscape < TWICE_MS;
  lastEscape = isSecond ? 0 : now;
  const open = current.value;
  const active = open?.active.value;
  if (!isSecond || open === undefined || active === undefined) return false;
  open.stop(active.id).catch((error: unknown) => report('The turn could not be stopped', error));
  return true;
}

function openNeighbor(step: number): boolean {
  const items = conversations.items.value ?? [];
  const id = route.value.name === 'conversation' ? route.value.id : undefined;
  const at = items.findIndex((item) => item.id === id);
  const next = items[at === -1 ? 0 : at + step];
  if (next === undefined) return false;
  go({ name: 'conversation', id: next.id });
  return true;
}

function handleSingle(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  const isField = target?.matches('input, textarea, select, [contenteditable]') === true;
  if (!hasSingleKeys.value || isField || event.ctrlKey || event.metaKey || event.altKey) return false;
  switch (event.key) {
    case '/':
      return focus('composer');
    case '?':
      isHelpOpen.value = true;
      return true;
    case 'j':
      return moveBlock(1);
    case 'k':
      return moveBlock(-1);
    case 'e':
      return pressIn('[data-action="edit"]');
    case 'c':
      return pressIn('[aria-label^="Copy"]');
    default:
      return false;
  }
}

function focus(id: string): boolean {
  // The element may appear with the next frame.
  requestAnimationFrame(() => document.getElementById(id)?.focus());
  return true;
}

/** Moves the focus to the next block of the transcript, or to the previous one. */
function moveBlock(step: number): boolean {
  const blocks = [...document.querySelectorAll<HTMLElement>('.transcript [data-block]')];
  const at = blocks.findIndex((block) => block.contains(document.activeElement));
  const next = at === -1 ? blocks.findLast((block) => isVisible(block)) : blocks[at + step];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
  return next !== undefined;
}

function isVisible(element: HTMLElement): boolean {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < window.innerHeight;
}

/** Presses a button of the focused block. */
function pressIn(selector: string): boolean {
  const row = document.activeElement?.closest('.row');
  const button = row?.querySelector<HTMLButtonElement>(selector);
  button?.click();
  return button !== null && button !== undefined;
}
