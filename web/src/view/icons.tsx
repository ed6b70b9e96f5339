// The icons, drawn on a grid of 20 by 20.

const PATHS = {
  plus: 'M10 4v12M4 10h12',
  search: 'M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12ZM13.5 13.5 17 17',
  send: 'M10 16V4M5 9l5-5 5 5',
  stop: 'M6 6h8v8H6Z',
  copy: 'M8 7h8v9H8ZM12 7V4H4v9h4',
  check: 'M4 10.5 8 14.5 16 6',
  cross: 'M5 5l10 10M15 5 5 15',
  chevron: 'M8 5l5 5-5 5',
  down: 'M10 4v12M5 11l5 5 5-5',
  menu: 'M3 5h14M3 10h14M3 15h14',
  more: 'M5 10h.01M10 10h.01M15 10h.01',
  edit: 'M12.5 4.5l3 3M4 16l.8-3.8L13 4l3 3-8.2 8.2L4 16Z',
  fork: 'M6 7v6M6 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM6 17a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM14 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM14 7c0 4-8 2.500-8 6',
  retry: 'M4 10a6 6 0 1 0 2-4.5M6 2.5v3.3h3.3',
  attach: 'M15.5 9.5 10 15a3.5 3.5 0 0 1-5-5l6-6a2.4 2.4 0 0 1 3.4 3.4l-5.8 5.8a1.1 1.1 0 0 1-1.6-1.6L12 6.6',
  terminal: 'M4 6l3.5 3.5L4 13M10 14h6',
  file: 'M5 3h6l4 4v10H5ZM11 3v4h4',
  eye: 'M2.5 10S5.5 5 10 5s7.5 5 7.5 5-3 5-7.5 5-7.5-5-7.5-5ZM10 12a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z',
  globe: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM3 10h14M10 3c2 2 3 4.300 3 7s-1 5-3 7c-2-2-3-4.300-3-7s1-5 3-7Z',
  plug: 'M7 3v4M13 3v4M5 7h10v2a5 5 0 0 1-10 0ZM10 14v3',
  agent: 'M5 7h10v8H5ZM10 7V4M8 11h.01M12 11h.01M3 10v2M17 10v2',
  tool: 'M13.500 3.500a4 4 0 0 0-4.800 5.300L3.500 14 6 16.500l5.200-5.200a4 4 0 0 0 5.300-4.800L14 9l-3-3Z',
  thought: 'M10 3a5 5 0 0 1 3 9v2H7v-2a5 5 0 0 1 3-9ZM8 17h4',
  plan: 'M8 5h8M8 10h8M8 15h8M3.500 5l.8.8L5.800 4M3.500 10l.8.8L5.800 9M3.500 15l.8.8 1.500-1.800',
  warning: 'M10 3.500 17.500 16h-15ZM10 8v4M10 14h.01',
  info: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM10 9v4.500M10 6.500h.01',
  question: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM8 8a2 2 0 1 1 2.500 1.900c-.4.1-.5.4-.5 1.100M10 13.500h.01',
  shield: 'M10 3l6 2v5c0 3.500-2.500 6-6 7-3.500-1-6-3.500-6-7V5Z',
  clock: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM10 6v4l2.500 2',
  gauge: 'M4 15a7 7 0 1 1 12 0M10 12l3-4',
  chart: 'M4 16V9M10 16V4M16 16v-5',
  sun: 'M10 13a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM10 2.500v1.500M10 16v1.500M2.500 10H4M16 10h1.500M4.700 4.700l1 1M14.300 14.300l1 1M15.300 4.700l-1 1M5.700 14.300l-1 1',
  moon: 'M16 11.500A6.500 6.500 0 0 1 8.500 4a6.500 6.500 0 1 0 7.500 7.500Z',
  auto: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM10 3v14M10 6h5M10 10h7M10 14h5',
  exit: 'M8 4H4v12h4M12 6.500 15.500 10 12 13.500M15.500 10H8',
  trash: 'M4 6h12M8 6V4h4v2M6 6l.7 10h6.600L14 6',
  queue: 'M4 5h12M4 10h12M4 15h6',
  steer: 'M4 16c0-5 2-7 6-7h6M12 5l4 4-4 4',
  keyboard: 'M2.500 6h15v8.500h-15ZM5.500 9h.01M8.500 9h.01M11.500 9h.01M14.500 9h.01M6.500 12h7',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 20 20" width="18" height="18" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
