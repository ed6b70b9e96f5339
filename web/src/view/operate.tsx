// The operator's view: figures, turns that wait or run, failing deliveries, schedules, agents, and the audit log.

import { useEffect } from 'preact/hooks';

import * as api from '../api/calls';
import type { Conversation, Status } from '../api/types';
import { agents, loadAgents, may } from '../state/app';
import { hashOf, route } from '../state/route';
import { Figure } from './figure';
import { MenuButton } from './menubutton';
import { AuditTab, DeliveriesTab, SchedulesTab } from './operatetabs';
import { Filters, usePolled } from './polled';
import { LoadProblem } from './problem';
import { StateMark } from './sidebar';
import { agentName, dateTimeText, sizeText, titleOf } from './titles';

const TABS = [
  { name: 'overview', text: 'Overview' },
  { name: 'turns', text: 'Turns' },
  { name: 'deliveries', text: 'Deliveries' },
  { name: 'schedules', text: 'Schedules' },
  { name: 'agents', text: 'Agents' },
  { name: 'log', text: 'Log' },
];

export function OperateView() {
  const to = route.value;
  const tab = to.name === 'operate' ? to.tab : 'overview';
  const filter = to.name === 'operate' ? to.filter : {};
  if (!may.value.operate) {
    return (
      <main class="view empty">
        <h1>Operation</h1>
        <p class="muted">This part of the page needs a token with the scope <code>admin</code>.</p>
      </main>
    );
  }
  return (
    <main class="view page">
      <header class="head">
        <MenuButton />
        <div class="head-title"><h1>Operation</h1></div>
      </header>
      <nav class="tabs" aria-label="Operation">
        {TABS.map(({ name, text }) => (
          <a href={hashOf({ name: 'operate', tab: name, filter: {} })} aria-current={tab === name ? 'page' : undefined}>{text}</a>
        ))}
      </nav>
      <div class="page-body wide" key={tab}>
        {tab === 'overview' && <Overview />}
        {tab === 'turns' && <Turns state={filter['state'] ?? ''} />}
        {tab === 'deliveries' && <DeliveriesTab state={filter['state'] ?? 'failed'} />}
        {tab === 'schedules' && <SchedulesTab />}
        {tab === 'agents' && <Agents />}
        {tab === 'log' && <AuditTab filter={filter} />}
      </div>
    </main>
  );
}

function Overview() {
  const { value, problem, refresh } = usePolled(api.status, 'status');
  return (
    <>
      {problem.value !== undefined && <LoadProblem what="The status cannot be loaded" problem={problem.value} onRetry={() => void refresh()} />}
      {value.value !== undefined && <Figures status={value.value} />}
    </>
  );
}

function Figures({ status }: { status: Status }) {
  const bad = (count: number) => (count > 0 ? 'bad' : undefined);
  return (
    <>
      <div class="figures">
        <Figure label="Turns running" value={String(status.runningTurns)} />
        <Figure label="Turns waiting" value={String(status.queuedTurns)} />
        <Figure label="Requests open" value={String(status.openPermissionRequests)} tone={status.openPermissionRequests > 0 ? 'notable' : undefined} />
        <Figure label="Deliveries failed" value={String(status.failedDeliveries)} tone={bad(status.failedDeliveries)} />
        <Figure label="Deliveries pending" value={String(status.pendingDeliveries)} />
        <Figure label="Leases expired" value={String(status.expiredLeases)} tone={bad(status.expiredLeases)} />
      </div>
      <section class="panel">
        <h2>This gateway</h2>
        <dl class="facts">
          <Fact name="Version" value={status.version} />
          <Fact name="Worker" value={status.worker} />
          <Fact name="Conversations" value={status.conversations.toLocaleString('en')} />
          <Fact name="Event streams" value={String(status.subscribers)} />
          <Fact name="Store" value={status.storeBytes === 0 ? 'in memory' : sizeText(status.storeBytes)} />
          <Fact name="Oldest waiting turn" value={status.waitingSince === undefined ? 'none' : `since ${dateTimeText(status.waitingSince)}`} />
        </dl>
      </section>
    </>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return <div class="fact"><dt>{name}</dt><dd><bdi>{value}</bdi></dd></div>;
}

const STATES = ['', 'running', 'waiting', 'queued', 'paused'];

function Turns({ state }: { state: string }) {
  const load = async (): Promise<Conversation[]> => {
    const wanted = state === '' ? STATES.slice(1) : [state];
    const lists = await Promise.all(wanted.map((one) => api.conversations({ state: one, limit: 200 })));
    return lists.flatMap((list) => list.items);
  };
  const { value, problem, refresh } = usePolled(load, state);
  const items = value.value;
  return (
    <>
      <Filters tab="turns" name="state" current={state} values={STATES} all="All active" />
      {problem.value !== undefined && <LoadProblem what="The turns cannot be loaded" problem={problem.value} onRetry={() => void refresh()} />}
      {items !== undefined && items.length === 0 && <p class="muted">No turn runs or waits.</p>}
      {items !== undefined && items.length > 0 && (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Turns">
          <table class="dense">
            <thead><tr><th scope="col">State</th><th scope="col">Conversation</th><th scope="col">Agent</th><th scope="col">Channel</th><th scope="col" class="align-right">Queue</th><th scope="col">Worker</th></tr></thead>
            <tbody>
              {items.map((item) => (
                <tr>
                  <td><span class="state-cell"><StateMark state={item.state} />{item.state}</span></td>
                  <td class="wide"><a href={hashOf({ name: 'conversation', id: item.id })}><bdi>{titleOf(item)}</bdi></a></td>
                  <td>{agentName(item.agent)}</td>
                  <td>{item.channel}</td>
                  <td class="align-right">{item.queued}</td>
                  <td><bdi class="cut">{item.worker ?? (item.pausedUntil === undefined ? '' : `until ${dateTimeText(item.pausedUntil)}`)}</bdi></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function Agents() {
  useEffect(() => void loadAgents(), []);
  const known = agents.value;
  if (known === undefined) return <p class="muted">Looking for agents…</p>;
  return (
    <div class="panels">
      {known.map((agent) => (
        <section class="panel">
          <h2>{agentName(agent.name)}{agent.isDefault && <span class="tag">default</span>}</h2>
          <dl class="facts">
            <Fact name="State" value={agent.available ? 'ready' : 'not available'} />
            <Fact name="Version" value={agent.version ?? 'unknown'} />
            <Fact name="Tested version" value={agent.testedVersion ?? 'unknown'} />
          </dl>
          {agent.problem !== undefined && <p class="failure-text" dir="auto">{agent.problem}</p>}
          <details>
            <summary>Capabilities</summary>
            <ul class="capabilities">
              {Object.entries(agent.capabilities).map(([name, { support, note }]) => (
                <li><code>{name}</code> <span class={`tag ${support}`}>{support}</span> <span class="muted">{note}</span></li>
              ))}
            </ul>
          </details>
        </section>
      ))}
    </div>
  );
}

