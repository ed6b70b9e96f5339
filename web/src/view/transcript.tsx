// The transcript: a windowed list that follows its end while the person is there.

import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { Virtualizer } from 'virtua';

import type { OpenConversation } from '../state/conversation';
import { TranscriptContext } from './context';
import { Icon } from './icons';
import { RowView } from './row';
import { type Row, RowBuilder } from './rows';

/** Within this distance of the end, the view follows new output. */
const FOLLOW_PX = 48;

/** Within this distance of the beginning, earlier events are loaded. */
const EARLIER_PX = 600;

export function Transcript({ open }: { open: OpenConversation }) {
  const builder = useMemo(() => new RowBuilder(), [open]);
  const rows = builder.build(open.log.value, open.sent.value);
  const scroller = useRef<HTMLDivElement>(null);
  const shift = usePrepended(rows);
  const { isFollowing, hasNew, follow } = useFollowing(scroller, rows, open);
  const context = useMemo(() => ({ open, builder, renderRow: (row: Row) => <RowView key={row.key} row={row} /> }), [open, builder]);
  return (
    <TranscriptContext.Provider value={context}>
      <div
        class="transcript" ref={scroller} role="region" aria-label="Transcript" tabIndex={0}
        data-rows={rows.length} data-following={isFollowing.value}
      >
        <div class="rows">
          <Virtualizer scrollRef={scroller as never} data={rows} shift={shift} bufferSize={800} itemSize={64}>
            {(row: Row) => <RowView key={row.key} row={row} />}
          </Virtualizer>
        </div>
      </div>
      <Earlier open={open} />
      {hasNew.value && (
        <button type="button" class="button new-output" onClick={follow}><Icon name="down" />New output</button>
      )}
    </TranscriptContext.Provider>
  );
}

function Earlier({ open }: { open: OpenConversation }) {
  if (open.isLoadingEarlier.value) return <div class="earlier-note" role="status"><span class="spinner" />Loading earlier messages…</div>;
  if (!open.hasEarlier || !open.isLoaded.value) return null;
  return (
    <button type="button" class="earlier-note off-screen-until-focus" onClick={() => void open.loadEarlier()}>Load earlier messages</button>
  );
}

/** Returns whether rows were added at the beginning since the last render. */
function usePrepended(rows: Row[]): boolean {
  const first = useRef<string | undefined>(undefined);
  const firstContent = rows.find((row) => row.type !== 'day')?.key;
  const isPrepended = first.current !== undefined && firstContent !== first.current && rows.some((row) => row.key === first.current);
  useEffect(() => {
    first.current = firstContent;
  });
  return isPrepended;
}

function useFollowing(
  scroller: { current: HTMLDivElement | null },
  rows: Row[],
  open: OpenConversation,
) {
  const isFollowing = useSignal(true);
  const hasNew = useSignal(false);
  // Rows that are measured later change the height of the content, which is observed below. A scroll of the virtualizer would
  // continue while they are measured, also against a person who scrolls.
  const toEnd = () => {
    const element = scroller.current;
    if (element !== null) element.scrollTop = element.scrollHeight;
  };
  const follow = () => {
    isFollowing.value = true;
    hasNew.value = false;
    toEnd();
  };
  useUserScroll(scroller, isFollowing, hasNew, open);
  // New rows, or a row that grows.
  const last = rows.at(-1);
  useLayoutEffect(() => {
    if (isFollowing.value && !hasSelection(scroller.current)) toEnd();
    else if (open.isLoaded.value) hasNew.value = true;
  }, [last, rows.length]);
  useEffect(() => {
    const content = scroller.current?.firstElementChild;
    if (content === null || content === undefined || scroller.current === null) return undefined;
    const observer = new ResizeObserver(() => {
      if (isFollowing.value && !hasSelection(scroller.current)) toEnd();
    });
    observer.observe(content);
    observer.observe(scroller.current);
    return () => observer.disconnect();
  }, [open]);
  return { isFollowing, hasNew, follow };
}

/** A person who selects text reads it. */
function hasSelection(element: HTMLElement | null): boolean {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && element !== null && element.contains(selection.anchorNode);
}

/** Whether the browser reports the end of a scroll. */
const HAS_SCROLL_END = 'onscrollend' in window;

/** A view that has not moved for this time is at rest. */
const AT_REST_MS = 200;

const UP_KEYS = new Set(['ArrowUp', 'PageUp', 'Home']);

function useUserScroll(
  scroller: { current: HTMLDivElement | null },
  isFollowing: { value: boolean },
  hasNew: { value: boolean },
  open: OpenConversation,
): void {
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return undefined;
    const distance = () => element.scrollHeight - element.scrollTop - element.clientHeight;
    // The scroll of a person, from its first input until the view has moved and is at rest. The end of a scroll that the page has
    // made itself can arrive before the view moves.
    let gesture: { from: number; hasMoved: boolean } | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const leave = () => {
      if (distance() <= 0 && element.scrollHeight <= element.clientHeight) return;
      gesture ??= { from: element.scrollTop, hasMoved: false };
      isFollowing.value = false;
    };
    const onWheel = (event: WheelEvent) => { if (event.deltaY < 0) leave(); };
    const onKey = (event: KeyboardEvent) => { if (UP_KEYS.has(event.key) && event.target === element) leave(); };
    const onPointer = (event: PointerEvent) => { if (event.target === element && event.offsetX >= element.clientWidth) leave(); };
    const update = () => {
      if (distance() <= FOLLOW_PX && gesture === undefined) {
        isFollowing.value = true;
        hasNew.value = false;
      }
      if (element.scrollTop < EARLIER_PX && !isFollowing.value) void open.loadEarlier();
    };
    const onScrollEnd = () => {
      if (gesture?.hasMoved === false) return;
      gesture = undefined;
      update();
    };
    const onScroll = () => {
      if (gesture !== undefined && element.scrollTop !== gesture.from) gesture.hasMoved = true;
      update();
      if (HAS_SCROLL_END) return;
      clearTimeout(timer);
      timer = setTimeout(onScrollEnd, AT_REST_MS);
    };
    element.addEventListener('wheel', onWheel, { passive: true });
    element.addEventListener('touchmove', leave, { passive: true });
    element.addEventListener('keydown', onKey);
    element.addEventListener('pointerdown', onPointer);
    element.addEventListener('scroll', onScroll, { passive: true });
    element.addEventListener('scrollend', onScrollEnd);
    return () => {
      clearTimeout(timer);
      element.removeEventListener('wheel', onWheel);
      element.removeEventListener('touchmove', leave);
      element.removeEventListener('keydown', onKey);
      element.removeEventListener('pointerdown', onPointer);
      element.removeEventListener('scroll', onScroll);
      element.removeEventListener('scrollend', onScrollEnd);
    };
  }, [open]);
}
