// Views that are loaded when they are opened.

import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

const LOADERS = {
  usage: async () => (await import('./usage')).UsageView,
  operate: async () => (await import('./operate')).OperateView,
} satisfies Record<string, () => Promise<ComponentType>>;

export function LazyView({ name }: { name: keyof typeof LOADERS }) {
  const [loaded, setLoaded] = useState<{ name: string; View: ComponentType }>();
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    setFailed(false);
    LOADERS[name]().then((View) => setLoaded({ name, View }), () => setFailed(true));
  }, [name]);
  if (hasFailed) {
    return (
      <main class="view empty">
        <p>This part of the page could not be loaded. The gateway may have another version now.</p>
        <button type="button" class="button" onClick={() => location.reload()}>Reload</button>
      </main>
    );
  }
  if (loaded?.name !== name) return <main class="view" aria-busy="true" />;
  return <loaded.View />;
}
