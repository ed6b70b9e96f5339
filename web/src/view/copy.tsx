// A button that copies a text.

import { useEffect, useState } from 'preact/hooks';

import { Icon } from './icons';

export function CopyButton({ text, label }: { text: string | (() => string); label: string }) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  useEffect(() => {
    if (state === 'idle') return undefined;
    const timer = setTimeout(() => setState('idle'), 1_600);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    setState((await copyText(typeof text === 'string' ? text : text())) ? 'copied' : 'failed');
  };
  const title = state === 'copied' ? 'Copied' : state === 'failed' ? 'Copying is not allowed here' : label;
  return (
    <button type="button" class="icon-button small" onClick={() => void copy()} title={title} aria-label={title}>
      <Icon name={state === 'copied' ? 'check' : 'copy'} />
    </button>
  );
}

/** Copies a text. A page without TLS on another machine has no clipboard interface. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'off-screen';
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand('copy');
    area.remove();
    return isCopied;
  }
}
