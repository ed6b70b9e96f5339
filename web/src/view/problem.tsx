// A failure to load something: what failed, its code, and a button.

import type { Problem } from '../api/http';
import { Icon } from './icons';

export function LoadProblem({ what, problem, onRetry }: { what: string; problem: Problem; onRetry: () => void }) {
  return (
    <div class="failure" role="alert">
      <Icon name="warning" />
      <div>
        <strong>{what}</strong>
        <div class="failure-text">{problem.message} <code>{problem.code}</code></div>
      </div>
      <button type="button" class="button" onClick={onRetry}>Try again</button>
    </div>
  );
}
