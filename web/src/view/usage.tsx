// Tokens and cost: by day, agent, conversation and author.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

import * as api from '../api/calls';
import { type Problem, asProblem } from '../api/http';
import type { Usage, UsageItem, UsageList } from '../api/types';
import { conversations } from '../state/app';
import { hashOf } from '../state/route';
import { Figure } from './figure';
import { MenuButton } from './menubutton';
import { LoadProblem } from './problem';
import { agentName, costText, titleOf, tokenText } from './titles';

const RANGES = [7, 30, 90];

interface Loaded {
  days: UsageList;
  agents: UsageList;
  conversations: UsageList;
  authors: UsageList;
}

export function UsageView() {
  const days = useSignal(30);
  const loaded = useSignal<Loaded | undefined>(undefined);
  const problem = useSignal<Problem | undefined>(undefined);
  const load = async () => {
    try {
      const filter = { days: days.value, limit: 366 };
      const [byDay, byAgent, byConversation, byAuthor] = await Promise.all([
        api.usage('day', filter), api.usage('agent', filter), api.usage('conversation', filter), api.usage('author', filter),
      ]);
      loaded.value = { days: byDay, agents: byAgent, conversations: byConversation, authors: byAuthor };
      problem.value = undefined;
    } catch (error) {
      problem.value = asProblem(error);
    }
  };
  useEffect(() => void load(), [days.value]);
  return (
    <main class="view page">
      <header class="head">
        <MenuButton />
        <div class="head-title"><h1>Usage</h1></div>
        <div class="segments" role="group" aria-label="Time">
          {RANGES.map((range) => (
            <button type="button" aria-pressed={days.value === range} onClick={() => { days.value = range; }}>{range} days</button>
          ))}
        </div>
      </header>
      <div class="page-body">
        {problem.value !== undefined && <LoadProblem what="The usage cannot be loaded" problem={problem.value} onRetry={() => void load()} />}
        {loaded.value !== undefined && <Report loaded={loaded.value} days={days.value} />}
      </div>
    </main>
  );
}

function Report({ loaded, days }: { loaded: Loaded; days: number }) {
  const { total } = loaded.days;
  if (total.inputTokens + total.outputTokens === 0) return <p class="muted">No tokens were used in the last {days} days.</p>;
  return (
    <>
      <div class="figures">
        <Figure label="Cost" value={costText(total.costUsd)} />
        <Figure label="Input tokens" value={tokenText(total.inputTokens)} />
        <Figure label="Output tokens" value={tokenText(total.outputTokens)} />
      </div>
      <section class="panel"><h2>By day</h2><Days items={loaded.days.items} days={days} /></section>
      <div class="panels">
        <Table title="By agent" items={loaded.agents.items} name={(item) => agentName(item.agent ?? '')} />
        <Table title="By author" items={loaded.authors.items} name={(item) => item.author ?? ''} />
      </div>
      <Table title="By conversation" items={loaded.conversations.items} name={conversationName} link={conversationLink} />
    </>
  );
}

function conversationName(item: UsageItem): string {
  const known = conversations.items.value?.find((one) => one.id === item.conversationId);
  return known === undefined ? `Conversation ${item.conversationId?.slice(-12) ?? ''}` : titleOf(known);
}

function conversationLink(item: UsageItem): string | undefined {
  return item.conversationId === undefined ? undefined : hashOf({ name: 'conversation', id: item.conversationId });
}

/** What is compared: the cost, or tokens where no agent reports a cost. */
function weight(usage: Usage, hasCost: boolean): number {
  return hasCost ? usage.costUsd : usage.inputTokens + usage.outputTokens;
}

function Days({ items, days }: { items: UsageItem[]; days: number }) {
  const byDay = new Map(items.map((item) => [item.day, item.usage]));
  const hasCost = items.some((item) => item.usage.costUsd > 0);
  const all = [...Array(days).keys()].map((index) => {
    const day = new Date(Date.now() - (days - 1 - index) * 86_400_000).toISOString().slice(0, 10);
    return { day, usage: byDay.get(day) ?? { inputTokens: 0, outputTokens: 0, costUsd: 0 } };
  });
  const most = Math.max(...all.map(({ usage }) => weight(usage, hasCost)), Number.MIN_VALUE);
  const text = (usage: Usage) => (hasCost ? costText(usage.costUsd) : `${tokenText(usage.inputTokens + usage.outputTokens)} tokens`);
  return (
    <figure class="days">
      <svg viewBox={`0 0 ${days * 10} 100`} preserveAspectRatio="none" role="img" aria-label={`The most in a day: ${text(all.reduce((one, other) => (weight(one.usage, hasCost) >= weight(other.usage, hasCost) ? one : other)).usage)}`}>
        {all.map(({ day, usage }, index) => {
          const height = (weight(usage, hasCost) / most) * 96;
          return (
            <rect x={index * 10 + 1.5} y={100 - Math.max(height, 2)} width={7} height={Math.max(height, 2)} class={height > 0 ? 'bar-full' : 'bar-empty'}>
              <title>{`${day}: ${text(usage)}`}</title>
            </rect>
          );
        })}
      </svg>
      <figcaption><span>{all[0]?.day}</span><span>{all.at(-1)?.day} (UTC)</span></figcaption>
    </figure>
  );
}

function Table(props: { title: string; items: UsageItem[]; name: (item: UsageItem) => string; link?: (item: UsageItem) => string | undefined }) {
  const hasCost = props.items.some((item) => item.usage.costUsd > 0);
  const items = [...props.items].sort((one, other) => weight(other.usage, hasCost) - weight(one.usage, hasCost));
  return (
    <section class="panel">
      <h2>{props.title}</h2>
      <div class="table-scroll" tabIndex={0} role="region" aria-label={props.title}>
        <table class="dense">
          <thead><tr><th scope="col">Name</th><th scope="col" class="align-right">Input</th><th scope="col" class="align-right">Output</th><th scope="col" class="align-right">Cost</th></tr></thead>
          <tbody>
            {items.map((item) => {
              const link = props.link?.(item);
              const name = <bdi>{props.name(item)}</bdi>;
              return (
                <tr>
                  <td class="wide">{link === undefined ? name : <a href={link}>{name}</a>}</td>
                  <td class="align-right">{tokenText(item.usage.inputTokens)}</td>
                  <td class="align-right">{tokenText(item.usage.outputTokens)}</td>
                  <td class="align-right">{costText(item.usage.costUsd)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
