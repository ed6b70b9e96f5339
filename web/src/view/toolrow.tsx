// A tool call: one line, and its body when it is opened.

import { useContext } from 'preact/hooks';

import type { ToolBlock } from '../state/model';
import { outcomeText } from '../state/requests';
import { editsOf } from '../tools/edits';
import { between, commandOf, durationText, summaryOf } from '../tools/summary';
import { DiffCount, DiffView, InputView, OutputView } from '../tools/views';
import { TranscriptContext } from './context';
import { CopyButton } from './copy';
import { Elapsed } from './elapsed';
import { Fold } from './fold';
import { Icon } from './icons';

export function ToolRow({ tool }: { tool: ToolBlock }) {
  const outcome = outcomeOf(tool);
  const summary = summaryOf(tool, outcome.className === 'running');
  const edits = tool.toolKind === 'edit' ? editsOf(tool) : [];
  const added = edits.reduce((sum, edit) => sum + edit.added, 0);
  const removed = edits.reduce((sum, edit) => sum + edit.removed, 0);
  return (
    <Fold
      rowKey={tool.key} icon={summary.icon} className={`tool ${outcome.className}`} isOpenAtFirst={outcome.className === 'failed'}
      line={
        <>
          <span class="fold-verb">{summary.verb}</span>
          <span class={summary.isCode ? 'fold-subject code' : 'fold-subject'} title={summary.subject}><bdi>{summary.subject}</bdi></span>
          {added + removed > 0 && <DiffCount added={added} removed={removed} />}
          <Outcome tool={tool} text={outcome.text} className={outcome.className} />
        </>
      }
      body={() => <ToolBody tool={tool} />}
    />
  );
}

type OutcomeClass = 'running' | 'waiting' | 'done' | 'failed' | 'cut';

function outcomeOf(tool: ToolBlock): { className: OutcomeClass; text: string } {
  if (tool.result !== undefined) {
    const { isError, exitCode } = tool.result;
    const isDenied = tool.decision !== undefined && !tool.decision.decision.startsWith('allow');
    if (isDenied) return { className: 'cut', text: 'denied' };
    if (exitCode !== undefined && exitCode !== 0) return { className: 'failed', text: `exit ${exitCode}` };
    if (isError) return { className: 'failed', text: 'failed' };
    return { className: 'done', text: '' };
  }
  if (tool.isCut) return { className: 'cut', text: 'no result' };
  return { className: 'running', text: 'running' };
}

function Outcome({ tool, text, className }: { tool: ToolBlock; text: string; className: OutcomeClass }) {
  const scope = useContext(TranscriptContext);
  const isWaiting = scope?.open.requests.value.some((request) => request.toolId === tool.toolId) === true;
  if (isWaiting && className === 'running') return <span class="outcome waiting"><Icon name="shield" />needs you</span>;
  if (className === 'running') return <span class="outcome running"><span class="spinner" /><Elapsed since={tool.startedAt} /></span>;
  const duration = durationText(between(tool.startedAt, tool.endedAt));
  return (
    <span class={`outcome ${className}`}>
      {tool.decision?.decision.startsWith('allow') === true && (
        <span class="allowed" title={outcomeText({ ...tool.decision, at: '' })}><Icon name="shield" /><span class="off-screen">{outcomeText({ ...tool.decision, at: '' })}</span></span>
      )}
      {className === 'failed' && <Icon name="cross" />}
      {text !== '' && <span>{text}</span>}
      {className === 'done' && <Icon name="check" />}
      {className === 'done' && <span class="off-screen">done</span>}
      <span class="duration">{duration}</span>
    </span>
  );
}

/** Arguments that the rest of the body shows. */
const SHOWN = ['command', 'cmd', 'old_string', 'oldString', 'new_string', 'newString', 'edits', 'changes', 'patch', 'patchText', 'content', 'diff'];

function ToolBody({ tool }: { tool: ToolBlock }) {
  const command = commandOf(tool);
  const edits = tool.toolKind === 'edit' ? editsOf(tool) : [];
  const leaveOut = edits.length > 0 ? [...SHOWN, 'file_path', 'filePath', 'path'] : command === undefined ? [] : SHOWN;
  const output = tool.result?.output ?? tool.output;
  const isError = tool.result?.isError === true || (tool.result?.exitCode ?? 0) !== 0;
  return (
    <>
      {tool.decision !== undefined && <p class="tool-decision"><Icon name="shield" />{outcomeText({ ...tool.decision, at: '' })}</p>}
      {command !== undefined && (
        <div class="command">
          <pre tabIndex={0} dir="ltr" aria-label="Command"><code>{command}</code></pre>
          <CopyButton text={command} label="Copy command" />
        </div>
      )}
      {edits.map((edit) => <DiffView edit={edit} />)}
      <InputView input={tool.input} leaveOut={leaveOut} />
      <Children tool={tool} />
      <Images content={tool.result?.content} />
      {/* The output of an edit repeats what its difference shows. */}
      {(edits.length === 0 || isError) && <OutputView output={output} label="Output" isError={isError} />}
      {output === '' && tool.result !== undefined && edits.length === 0 && <p class="muted no-output">No output</p>}
    </>
  );
}

/** What the subagent of a call does. */
function Children({ tool }: { tool: ToolBlock }) {
  const scope = useContext(TranscriptContext);
  if (tool.children.length === 0 || scope === undefined) return null;
  const isClosed = tool.result !== undefined || tool.isCut;
  return (
    <div class="subagent" role="group" aria-label="Subagent">
      {scope.builder.blocks(tool.children, isClosed).map((row) => scope.renderRow(row))}
    </div>
  );
}

const IMAGE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** Images in the result of a tool. They are data of the log: nothing is loaded from another place. */
function Images({ content }: { content: unknown[] | undefined }) {
  const images = (content ?? []).flatMap((block) => {
    const { type, data, mimeType } = (block ?? {}) as { type?: unknown; data?: unknown; mimeType?: unknown };
    const isImage = type === 'image' && typeof data === 'string' && typeof mimeType === 'string' && IMAGE_TYPES.has(mimeType);
    return isImage && /^[A-Za-z0-9+/=\s]+$/.test(data) ? [`data:${mimeType};base64,${data}`] : [];
  });
  return <>{images.map((source) => <img class="tool-image" src={source} alt="Image from the tool" loading="lazy" />)}</>;
}
