// The body of an opened tool call: its arguments, its changes and its output.

import { useMemo, useState } from 'preact/hooks';
import { Virtualizer } from 'virtua';
import { useRef } from 'preact/hooks';

import { asObject } from '../state/events';
import { CopyButton } from '../view/copy';
import type { DiffLine } from './diff';
import type { FileEdit } from './edits';
import { partsOf, spansOf, splitLines } from './output';

/** The number of lines of a difference that are shown at first. */
const DIFF_LINES = 400;

export function DiffView({ edit }: { edit: FileEdit }) {
  const [isWhole, setWhole] = useState(false);
  const lines = isWhole ? edit.lines : edit.lines.slice(0, DIFF_LINES);
  const copy = () => edit.lines.map((line) => `${SIGNS[line.kind]}${line.text}`).join('\n');
  return (
    <div class="diff">
      <div class="diff-head">
        <span class="diff-path" title={edit.path}><bdi>{edit.path === '' ? 'File' : edit.path}</bdi></span>
        {!edit.isOpaque && <DiffCount added={edit.added} removed={edit.removed} />}
        {!edit.isOpaque && <CopyButton text={copy} label="Copy diff" />}
      </div>
      {edit.isOpaque ? null : (
        <div class="diff-body" tabIndex={0} role="region" aria-label={`Changes of ${edit.path}`} dir="ltr">
          <div class="diff-lines">{lines.map((line) => <DiffRow line={line} />)}</div>
        </div>
      )}
      {lines.length < edit.lines.length && (
        <button type="button" class="text-button" onClick={() => setWhole(true)}>
          Show {edit.lines.length - lines.length} more lines
        </button>
      )}
    </div>
  );
}

const SIGNS = { same: ' ', added: '+', removed: '-', gap: '' } as const;

function DiffRow({ line }: { line: DiffLine }) {
  if (line.kind === 'gap') return <div class="diff-line gap" aria-label="Lines are left out">⋯</div>;
  return (
    <div class={`diff-line ${line.kind}`}>
      <span class="sign" aria-hidden="true">{SIGNS[line.kind]}</span>
      <span class="content">{line.text.length > 2_000 ? `${line.text.slice(0, 2_000)} …` : line.text}</span>
    </div>
  );
}

export function DiffCount({ added, removed }: { added: number; removed: number }) {
  return (
    <span class="diff-count" aria-label={`${added} lines added, ${removed} removed`}>
      <span class="added">+{added}</span> <span class="removed">−{removed}</span>
    </span>
  );
}

/** The output of a tool. Only its beginning and its end are nodes, until all of it is wanted. */
export function OutputView({ output, label, isError }: { output: string; label: string; isError?: boolean }) {
  const [isWhole, setWhole] = useState(false);
  const lines = useMemo(() => splitLines(output), [output]);
  if (output === '') return null;
  const { head, hidden, tail } = partsOf(lines);
  return (
    <div class={isError === true ? 'output error' : 'output'}>
      <div class="output-head">
        <span>{label}</span>
        <span class="muted">{lines.length === 1 ? '1 line' : `${lines.length.toLocaleString('en')} lines`}</span>
        <CopyButton text={output} label={`Copy ${label.toLowerCase()}`} />
      </div>
      {isWhole && hidden > 0 ? (
        <AllLines lines={lines} label={label} />
      ) : (
        <pre class="output-body" tabIndex={0} dir="ltr" aria-label={label}>
          {head.map((line) => <Line text={line} />)}
          {hidden > 0 && (
            <button type="button" class="text-button hidden-lines" onClick={() => setWhole(true)}>
              Show {hidden.toLocaleString('en')} hidden lines
            </button>
          )}
          {tail.map((line) => <Line text={line} />)}
        </pre>
      )}
    </div>
  );
}

function AllLines({ lines, label }: { lines: string[]; label: string }) {
  const scroller = useRef<HTMLPreElement>(null);
  return (
    <pre ref={scroller} class="output-body windowed" tabIndex={0} dir="ltr" aria-label={label}>
      <Virtualizer scrollRef={scroller as never} data={lines} itemSize={21}>
        {(line: string, index: number) => <Line key={index} text={line} />}
      </Virtualizer>
    </pre>
  );
}

function Line({ text }: { text: string }) {
  if (text === '') return <div class="line">{'\n'}</div>;
  return (
    <div class="line">
      {spansOf(text).map(({ text: part, classes }) => (classes === '' ? part : <span class={classes}>{part}</span>))}
    </div>
  );
}

/** The arguments of a call: short ones as a list, others as JSON. */
export function InputView({ input, leaveOut }: { input: unknown; leaveOut: string[] }) {
  if (typeof input === 'string') return <OutputView output={input} label="Input" />;
  const entries = Object.entries(asObject(input)).filter(([name]) => !leaveOut.includes(name));
  if (entries.length === 0) return null;
  return (
    <dl class="arguments">
      {entries.map(([name, value]) => (
        <div class="argument">
          <dt>{name}</dt>
          <dd>{argument(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function argument(value: unknown) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? '';
  return text.includes('\n') || text.length > 200 ? <OutputView output={text} label="Text" /> : <code><bdi>{text}</bdi></code>;
}
