// What rows of a transcript need besides their own content.

import { type ComponentChildren, createContext } from 'preact';
import { signal } from '@preact/signals';

import type { OpenConversation } from '../state/conversation';
import type { Row, RowBuilder } from './rows';

export interface TranscriptScope {
  open: OpenConversation;
  builder: RowBuilder;
  /** Renders a row of a subagent. */
  renderRow: (row: Row) => ComponentChildren;
}

export const TranscriptContext = createContext<TranscriptScope | undefined>(undefined);

/** Which rows the person has opened or closed. Rows outside the window have no nodes, so it is kept here. */
export const folds = signal<ReadonlyMap<string, boolean>>(new Map());

export function setFold(key: string, isOpen: boolean): void {
  folds.value = new Map(folds.value).set(key, isOpen);
}
