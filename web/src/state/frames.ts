// Changes are applied once per frame, and four times a second while the page is hidden.

const waiting = new Map<string, () => void>();
let isScheduled = false;

const HIDDEN_MS = 250;

/** Calls an action in the next frame. Another one with the same name replaces it. */
export function onFrame(name: string, action: () => void): void {
  waiting.set(name, action);
  if (isScheduled) return;
  isScheduled = true;
  if (document.visibilityState === 'hidden') setTimeout(run, HIDDEN_MS);
  else {
    // A page that becomes hidden has no more frames.
    const timer = setTimeout(run, HIDDEN_MS);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      run();
    });
  }
}

function run(): void {
  if (!isScheduled) return;
  isScheduled = false;
  const actions = [...waiting.values()];
  waiting.clear();
  for (const action of actions) action();
}
