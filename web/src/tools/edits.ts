// The file changes in the arguments of a tool call.

import { asObject, list, optionalText } from '../state/events';
import type { ToolBlock } from '../state/model';
import { type DiffLine, diffLines, parsePatch } from './diff';

export interface FileEdit {
  path: string;
  lines: DiffLine[];
  added: number;
  removed: number;
  /** The change is only named: its lines are unknown. */
  isOpaque: boolean;
}

const cache = new WeakMap<object, FileEdit[]>();

/** Returns the changes of a call. They are computed once. */
export function editsOf(tool: Pick<ToolBlock, 'input' | 'toolKind'>): FileEdit[] {
  if (typeof tool.input !== 'object' || tool.input === null) return [];
  const known = cache.get(tool.input);
  if (known !== undefined) return known;
  const edits = findEdits(asObject(tool.input));
  cache.set(tool.input, edits);
  return edits;
}

function findEdits(input: Record<string, unknown>): FileEdit[] {
  const path = first(input, ['file_path', 'filePath', 'path', 'absolute_path']) ?? '';
  const before = first(input, ['old_string', 'oldString', 'old_str', 'oldText']);
  const after = first(input, ['new_string', 'newString', 'new_str', 'newText']);
  if (before !== undefined || after !== undefined) return [edit(path, diffLines(before ?? '', after ?? ''))];
  const edits = list(input, 'edits');
  if (edits.length > 0) {
    const lines = edits.flatMap((one, index) => {
      const fields = asObject(one);
      const old = first(fields, ['old_string', 'oldString', 'oldText']) ?? '';
      const now = first(fields, ['new_string', 'newString', 'newText']) ?? '';
      const gap: DiffLine[] = index === 0 ? [] : [{ kind: 'gap', text: '' }];
      return [...gap, ...diffLines(old, now)];
    });
    return [edit(path, lines)];
  }
  const patch = first(input, ['patch', 'patchText', 'diff', 'unified_diff']);
  if (patch !== undefined) return parsePatch(patch).map((file) => edit(file.path || path, file.lines));
  const changes = list(input, 'changes');
  if (changes.length > 0) return changes.flatMap((change) => ofChange(asObject(change)));
  const content = first(input, ['content', 'contents', 'file_text']);
  return content !== undefined && path !== '' ? [edit(path, diffLines('', content))] : [];
}

function ofChange(change: Record<string, unknown>): FileEdit[] {
  const path = optionalText(change, 'path') ?? '';
  const diff = optionalText(change, 'diff');
  if (diff === undefined) return path === '' ? [] : [{ path, lines: [], added: 0, removed: 0, isOpaque: true }];
  return parsePatch(diff).map((file) => edit(file.path || path, file.lines));
}

function edit(path: string, lines: DiffLine[]): FileEdit {
  const count = (kind: DiffLine['kind']) => lines.filter((line) => line.kind === kind).length;
  return { path, lines, added: count('added'), removed: count('removed'), isOpaque: false };
}

function first(input: Record<string, unknown>, fields: string[]): string | undefined {
  for (const field of fields) {
    if (typeof input[field] === 'string') return input[field];
  }
  return undefined;
}
