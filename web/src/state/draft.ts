// A turn that a batch changes. The turn and its blocks are copied when they are first changed.

import {
  type LogEvent, asObject, list, object, optionalNumber, optionalText, text,
} from './events';
import type { Block, PlanEntry, Request, TextBlock, ToolBlock, Turn, TurnState } from './model';
import { noticeOf } from './notices';

/** Events that show nothing themselves. */
const SILENT = new Set(['usage', 'tool_use_delta']);

export class TurnDraft {
  readonly id: string;
  private turn: Turn;
  /** Blocks that this batch has copied already. */
  private copied = new Set<Block>();
  private tools: Map<string, ToolBlock> | undefined;

  constructor(before: Turn) {
    this.id = before.id;
    this.turn = { ...before, blocks: [...before.blocks] };
  }

  finish(): Turn {
    return this.turn;
  }

  touch(event: LogEvent): void {
    this.turn.lastSeq = event.seq;
  }

  /** Applies an event about the turn itself. Returns false if it is another one. */
  applyTurnEvent(event: LogEvent): boolean {
    const { turn } = this;
    switch (event.type) {
      case 'turn_queued':
        if (turn.seq !== event.seq) this.requeue(event);
        return true;
      case 'turn_edited':
        turn.text = text(event, 'text');
        turn.isEdited = true;
        return true;
      case 'turn_started':
        this.start(event);
        return true;
      case 'turn_joined':
        turn.joinedInto = text(event, 'into');
        turn.state = 'running';
        return true;
      case 'turn_retrying': {
        const delay = optionalNumber(event, 'delayMs') ?? 0;
        this.wait('retrying', event.at, new Date((Date.parse(event.at) || 0) + delay).toISOString());
        turn.retryCode = text(event, 'code');
        this.add(noticeOf(event));
        return true;
      }
      case 'turn_paused':
        this.wait('paused', event.at, text(event, 'until'));
        return true;
      case 'turn_resumed':
        this.setState('queued');
        return true;
      default:
        return false;
    }
  }

  private start(event: LogEvent): void {
    const { turn } = this;
    this.setState('running');
    turn.attempt = optionalNumber(event, 'attempt') ?? turn.attempt + 1;
    turn.agent = optionalText(event, 'agent') ?? turn.agent;
    turn.worker = optionalText(event, 'worker') ?? turn.worker;
    turn.startedAt ??= event.at;
    turn.isClosed = false;
  }

  private wait(state: TurnState, at: string, until: string): void {
    this.cutTools(at);
    this.setState(state);
    this.turn.resumesAt = until;
  }

  private requeue(event: LogEvent): void {
    this.setState('queued');
    this.turn.error = undefined;
    this.turn.endedAt = undefined;
    this.turn.isClosed = false;
    this.add({ kind: 'notice', key: `n${event.seq}`, level: 'info', title: 'Queued again', text: '', at: event.at });
  }

  private setState(state: TurnState): void {
    this.turn.state = state;
    this.turn.resumesAt = undefined;
    this.turn.retryCode = undefined;
    this.turn.position = undefined;
  }

  close(event: LogEvent): void {
    const state = text(event, 'state');
    this.setState(state === 'failed' || state === 'aborted' ? state : 'done');
    const code = optionalText(event, 'errorCode');
    if (state === 'failed') {
      const message = optionalText(event, 'error') ?? this.turn.error?.message ?? '';
      this.turn.error = { code: code ?? this.turn.error?.code ?? 'ERROR', message };
    } else {
      this.turn.error = undefined;
    }
    this.turn.endedAt = event.at;
    this.turn.isClosed = true;
    this.cutTools(event.at);
  }

  /** Applies an event of the agent's run. */
  applyRunEvent(event: LogEvent): void {
    switch (event.type) {
      case 'text':
      case 'thinking':
        return this.addText(event, event.type);
      case 'retract':
        return this.retract(text(event, 'messageId'));
      case 'tool_use':
        return this.addTool(event);
      case 'tool_output':
        return this.changeTool(text(event, 'toolId'), (tool) => {
          tool.output += text(event, 'text');
        });
      case 'tool_result':
        return this.finishTool(event);
      case 'plan':
        return this.setPlan(event, list(event, 'entries'));
      case 'init':
        this.turn.model = optionalText(event, 'model') ?? this.turn.model;
        return;
      case 'queued':
        this.turn.position = optionalNumber(event, 'position');
        return;
      case 'error':
        this.turn.error = { code: text(event, 'code'), message: text(event, 'message') };
        return;
      case 'done':
        return this.setResult(object(event, 'result'));
      default:
        if (!SILENT.has(event.type)) this.add(noticeOf(event));
    }
  }

  private addText(event: LogEvent, kind: 'text' | 'thinking'): void {
    const siblings = this.siblings(event);
    const last = siblings.at(-1);
    const messageId = text(event, 'messageId');
    if (last?.kind === kind && last.messageId === messageId) {
      const block = this.own(siblings, siblings.length - 1) as TextBlock;
      block.text += text(event, 'text');
      block.endedAt = event.at;
      return;
    }
    this.push(siblings, {
      kind, key: `b${event.seq}`, messageId, text: text(event, 'text'), at: event.at, endedAt: event.at,
    });
  }

  /** Removes the text of a message: the agent sends it again, or the attempt is repeated. */
  private retract(messageId: string): void {
    const isKept = (block: Block) =>
      (block.kind !== 'text' && block.kind !== 'thinking') || block.messageId !== messageId;
    this.turn.blocks = this.turn.blocks.filter(isKept);
    for (const tool of this.allTools()) {
      if (tool.children.some((block) => !isKept(block))) {
        this.changeTool(tool.toolId, (own) => {
          own.children = own.children.filter(isKept);
        });
      }
    }
  }

  private addTool(event: LogEvent): void {
    const todos = list(object(event, 'input'), 'todos');
    if (text(event, 'toolName') === 'TodoWrite' && todos.length > 0) {
      // The to-do list of Claude Code is a tool of its own.
      this.setPlan(event, todos);
      return;
    }
    const tool: ToolBlock = {
      kind: 'tool',
      key: `b${event.seq}`,
      toolId: text(event, 'toolId'),
      name: text(event, 'toolName'),
      server: optionalText(event, 'server'),
      toolKind: text(event, 'kind'),
      input: event['input'],
      output: '',
      isCut: false,
      startedAt: event.at,
      children: [],
    };
    this.push(this.siblings(event), tool);
    this.toolMap().set(tool.toolId, tool);
  }

  private finishTool(event: LogEvent): void {
    this.changeTool(text(event, 'toolId'), (tool) => {
      const content = list(event, 'content');
      tool.result = {
        output: text(event, 'output'),
        isError: event['isError'] === true,
        exitCode: optionalNumber(event, 'exitCode'),
        content: content.length > 0 ? content : undefined,
      };
      tool.output = '';
      tool.endedAt = event.at;
    });
  }

  private cutTools(at: string): void {
    for (const tool of this.allTools()) {
      if (tool.result === undefined && !tool.isCut) {
        this.changeTool(tool.toolId, (own) => {
          own.isCut = true;
          own.endedAt = at;
        });
      }
    }
  }

  private setPlan(event: LogEvent, steps: unknown[]): void {
    const entries: PlanEntry[] = steps.map((entry) => {
      const fields = asObject(entry);
      return { content: text(fields, 'content'), status: text(fields, 'status') };
    });
    const index = this.turn.blocks.findIndex((block) => block.kind === 'plan');
    const known = this.turn.blocks[index];
    if (known?.kind === 'plan') this.turn.blocks[index] = { ...known, entries };
    else this.push(this.turn.blocks, { kind: 'plan', key: `b${event.seq}`, entries });
  }

  private setResult(result: Record<string, unknown>): void {
    const usage = object(result, 'usage');
    const context = object(result, 'context');
    const usedTokens = optionalNumber(context, 'usedTokens');
    const number = (field: string) => optionalNumber(usage, field) ?? 0;
    this.turn.usage = {
      inputTokens: number('inputTokens') + number('cacheReadTokens') + number('cacheWriteTokens'),
      outputTokens: number('outputTokens'),
      costUsd: optionalNumber(result, 'totalCostUsd'),
      durationMs: optionalNumber(result, 'durationMs'),
      model: optionalText(result, 'model'),
      context: usedTokens === undefined ? undefined : { usedTokens, windowTokens: optionalNumber(context, 'windowTokens') },
    };
    this.turn.model = optionalText(result, 'model') ?? this.turn.model;
  }

  addRequest(request: Request, event: LogEvent): void {
    this.push(this.turn.blocks, { kind: 'request', key: `b${event.seq}`, requestId: request.id });
  }

  /** Returns the requests of the turn. */
  requestIds(): string[] {
    return this.turn.blocks.flatMap((block) => (block.kind === 'request' ? [block.requestId] : []));
  }

  decide(toolId: string, answer: { decision: string; by?: string }): void {
    this.changeTool(toolId, (tool) => {
      tool.decision = { decision: answer.decision, by: answer.by ?? '' };
    });
  }

  /** Shows the answer of a rule or of the mode at its tool call. */
  applyRuleAnswer(event: LogEvent, answer: { decision: string; by?: string }): void {
    const toolId = optionalText(object(event, 'request'), 'toolId');
    if (toolId !== undefined && this.toolMap().has(toolId)) this.decide(toolId, answer);
  }

  private add(block: Block): void {
    this.push(this.turn.blocks, block);
  }

  private push(siblings: Block[], block: Block): void {
    siblings.push(block);
    this.copied.add(block);
  }

  /** Returns the blocks beside which an event belongs: those of its subagent, or of the turn. */
  private siblings(event: LogEvent): Block[] {
    const parent = optionalText(event, 'parentToolId');
    const tool = parent === undefined ? undefined : this.ownTool(parent);
    return tool?.children ?? this.turn.blocks;
  }

  private own(siblings: Block[], index: number): Block | undefined {
    const block = siblings[index];
    if (block === undefined || this.copied.has(block)) return block;
    const copy: Block = block.kind === 'tool' ? { ...block, children: [...block.children] } : { ...block };
    siblings[index] = copy;
    this.copied.add(copy);
    if (copy.kind === 'tool') this.toolMap().set(copy.toolId, copy);
    return copy;
  }

  private changeTool(toolId: string, change: (tool: ToolBlock) => void): void {
    const tool = this.ownTool(toolId);
    if (tool !== undefined) change(tool);
  }

  /** Returns a copy of a tool call that may be changed, with copies of the calls around it. */
  private ownTool(toolId: string, siblings: Block[] = this.turn.blocks): ToolBlock | undefined {
    if (!this.toolMap().has(toolId)) return undefined;
    const known = this.toolMap().get(toolId);
    if (known !== undefined && this.copied.has(known)) return known;
    for (let index = siblings.length - 1; index >= 0; index -= 1) {
      const block = siblings[index];
      if (block?.kind !== 'tool') continue;
      if (block.toolId === toolId) return this.own(siblings, index) as ToolBlock;
      if (contains(block, toolId)) {
        const owned = this.own(siblings, index) as ToolBlock;
        return this.ownTool(toolId, owned.children);
      }
    }
    return undefined;
  }

  private toolMap(): Map<string, ToolBlock> {
    if (this.tools === undefined) {
      this.tools = new Map();
      const visit = (blocks: Block[]) => {
        for (const block of blocks) {
          if (block.kind === 'tool') {
            this.tools?.set(block.toolId, block);
            visit(block.children);
          }
        }
      };
      visit(this.turn.blocks);
    }
    return this.tools;
  }

  private allTools(): ToolBlock[] {
    return [...this.toolMap().values()];
  }
}

function contains(tool: ToolBlock, toolId: string): boolean {
  return tool.children.some((block) => block.kind === 'tool' && (block.toolId === toolId || contains(block, toolId)));
}
