// The agent's to-do list.

import type { PlanEntry } from '../state/model';

const MARKS: Record<string, { icon: string; text: string }> = {
  completed: { icon: '✓', text: 'done' },
  in_progress: { icon: '●', text: 'in progress' },
  pending: { icon: '○', text: 'to do' },
};

export function PlanList({ entries }: { entries: PlanEntry[] }) {
  return (
    <ol class="plan">
      {entries.map((entry) => {
        const mark = MARKS[entry.status] ?? { icon: '○', text: entry.status };
        return (
          <li class={`plan-entry ${entry.status}`}>
            <span class="plan-mark" role="img" aria-label={mark.text}>{mark.icon}</span>
            <span dir="auto">{entry.content}</span>
          </li>
        );
      })}
    </ol>
  );
}

export function planText(entries: PlanEntry[]): string {
  return `${entries.filter((entry) => entry.status === 'completed').length} of ${entries.length} done`;
}
