// Times that change while they are shown.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

import { durationText } from '../tools/summary';

/** The time since a start, by this machine's clock. */
export function Elapsed({ since }: { since: string }) {
  const now = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => { now.value = Date.now(); }, 1_000);
    return () => clearInterval(timer);
  }, [since]);
  const seconds = Math.max(0, Math.round((now.value - Date.parse(since)) / 1_000));
  return <span class="duration">{seconds < 1 ? '' : durationText(seconds * 1_000).replace('.0 s', ' s')}</span>;
}

/** The time until something happens. */
export function Countdown({ until, text }: { until: string | undefined; text: string }) {
  const now = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => { now.value = Date.now(); }, 500);
    return () => clearInterval(timer);
  }, [until]);
  const seconds = Math.ceil(((until === undefined ? Number.NaN : Date.parse(until)) - now.value) / 1_000);
  return <span>{seconds > 0 ? `${text} in ${durationText(seconds * 1_000).replace('.0 s', ' s')}` : `${text} now`}</span>;
}
