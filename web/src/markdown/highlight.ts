// Colors of code. The grammars are loaded when the first block of code is closed.

import type { ComponentChildren } from 'preact';

type Highlighter = typeof import('./grammars');

let loaded: Highlighter | undefined;
let loading: Promise<Highlighter | undefined> | undefined;

/** The longest code that is colored, in characters. */
const MAX_LENGTH = 60_000;

export function highlighterNow(): Highlighter | undefined {
  return loaded;
}

/** Loads the grammars once. Code stays without colors if that fails. */
export function loadHighlighter(): Promise<Highlighter | undefined> {
  loading ??= import('./grammars').then(
    (module) => (loaded = module),
    () => {
      loading = undefined;
      return undefined;
    },
  );
  return loading;
}

/** Returns colored code, or nothing if it has no grammar or is too long. */
export function colored(highlighter: Highlighter, code: string, language: string): ComponentChildren | undefined {
  return code.length > MAX_LENGTH ? undefined : highlighter.colored(code, language);
}
