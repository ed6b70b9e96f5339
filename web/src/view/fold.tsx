// A line that opens and closes what belongs to it.

import type { ComponentChildren } from 'preact';

import { folds, setFold } from './context';
import { Icon, type IconName } from './icons';

export function Fold(props: {
  rowKey: string;
  icon: IconName;
  isOpenAtFirst?: boolean;
  line: ComponentChildren;
  body: () => ComponentChildren;
  className?: string;
  label?: string;
}) {
  const isOpen = folds.value.get(props.rowKey) ?? props.isOpenAtFirst ?? false;
  return (
    <div class={`fold ${props.className ?? ''}`} data-open={isOpen ? '' : undefined}>
      <button
        type="button" class="fold-line" data-block aria-expanded={isOpen} aria-label={props.label}
        onClick={() => setFold(props.rowKey, !isOpen)}
      >
        <Icon name={props.icon} />
        {props.line}
        <span class="fold-mark"><Icon name="chevron" /></span>
      </button>
      {isOpen && <div class="fold-body">{props.body()}</div>}
    </div>
  );
}
