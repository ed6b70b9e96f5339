// The colors: light, dark, or those of the system.

import { signal } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';

const KEY = 'teamster.theme';

export const theme = signal<Theme>(readTheme());

function readTheme(): Theme {
  const value = readSetting(KEY);
  return value === 'light' || value === 'dark' ? value : 'auto';
}

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = theme.value;
}

export function setTheme(next: Theme): void {
  theme.value = next;
  writeSetting(KEY, next === 'auto' ? undefined : next);
  applyTheme();
}

/** Reads a setting of this browser. */
export function readSetting(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Saves a setting of this browser, or removes it. */
export function writeSetting(key: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // The setting holds until the page is closed.
  }
}
