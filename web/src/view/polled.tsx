// What the tabs of the operator's view share: values that are read again and again, and filters in the address.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

import { type Problem, asProblem } from '../api/http';
import { hashOf } from '../state/route';

/** Loads something now and every few seconds while the page is visible. */
export function usePolled<T>(load: () => Promise<T>, key: string, interval = 5_000) {
  const value = useSignal<T | undefined>(undefined);
  const problem = useSignal<Problem | undefined>(undefined);
  const refresh = async () => {
    try {
      value.value = await load();
      problem.value = undefined;
    } catch (error) {
      problem.value = asProblem(error);
    }
  };
  useEffect(() => {
    void refresh();
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void refresh();
    }, interval);
    return () => clearInterval(timer);
  }, [key]);
  return { value, problem, refresh };
}

export function Filters(props: { tab: string; name: string; current: string; values: string[]; all?: string }) {
  return (
    <nav class="chips" aria-label="Filter">
      {props.values.map((value) => (
        <a
          class="chip" aria-current={props.current === value ? 'true' : undefined}
          href={hashOf({ name: 'operate', tab: props.tab, filter: value === '' ? {} : { [props.name]: value } })}
        >
          {value === '' ? props.all : value}
        </a>
      ))}
    </nav>
  );
}
