// The place in the page, in the fragment of the address.

import { signal } from '@preact/signals';

export type Route =
  | { name: 'new' }
  | { name: 'conversation'; id: string }
  | { name: 'usage' }
  | { name: 'operate'; tab: string; filter: Record<string, string> };

export function parseRoute(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map((part) => decodePart(part));
  if (parts[0] === 'c' && parts[1] !== undefined) return { name: 'conversation', id: parts[1] };
  if (parts[0] === 'usage') return { name: 'usage' };
  if (parts[0] === 'operate') {
    return { name: 'operate', tab: parts[1] ?? 'overview', filter: Object.fromEntries(new URLSearchParams(search)) };
  }
  return { name: 'new' };
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function hashOf(route: Route): string {
  switch (route.name) {
    case 'new':
      return '#/';
    case 'conversation':
      return `#/c/${encodeURIComponent(route.id)}`;
    case 'usage':
      return '#/usage';
    case 'operate': {
      const search = new URLSearchParams(route.filter).toString();
      return `#/operate/${encodeURIComponent(route.tab)}${search === '' ? '' : `?${search}`}`;
    }
  }
}

export const route = signal<Route>({ name: 'new' });

export function go(to: Route, options: { replace?: boolean } = {}): void {
  const hash = hashOf(to);
  if (location.hash === hash) route.value = to;
  else if (options.replace === true) {
    history.replaceState(null, '', hash);
    route.value = to;
  } else location.hash = hash;
}
