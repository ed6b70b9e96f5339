// Parts of the page that are loaded when they are opened.

import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

const LOADERS = {
  conversation: async () => (await import('./conversation')).CurrentConversation,
  usage: async () => (await import('./usage')).UsageView,
  operate: async () => (await import('./operate')).OperateView,
} satisfies Record<string, () => Promise<ComponentType>>;

type Name = keyof typeof LOADERS;

const loaded = new Map<Name, ComponentType>();

async function load(name: Name): Promise<ComponentType> {
  const View = loaded.get(name) ?? (await LOADERS[name]());
  loaded.set(name, View);
  return View;
}

/** Loads a part before it is needed. */
export function preload(name: Name): void {
  load(name).catch(() => undefined);
}

export function LazyView({ name }: { name: Name }) {
  const [, setLoaded] = useState<Name | undefined>(loaded.has(name) ? name : undefined);
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    setFailed(false);
    load(name).then(() => setLoaded(name), () => setFailed(true));
  }, [name]);
  if (hasFailed) {
    return (
      <main class="view empty">
        <p>This part of the page could not be loaded. The gateway may have another version now.</p>
        <button type="button" class="button" onClick={() => location.reload()}>Reload</button>
      </main>
    );
  }
  const View = loaded.get(name);
  return View === undefined ? <main class="view" aria-busy="true" /> : <View key={name} />;
}
