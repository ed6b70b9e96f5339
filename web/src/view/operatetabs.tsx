// Tabs of the operator's view that list records: deliveries, schedules and the audit log.

import { useSignal } from '@preact/signals';

import * as api from '../api/calls';
import type { AuditEntry } from '../api/types';
import { report, toast } from '../state/app';
import { go, hashOf } from '../state/route';
import { Filters, usePolled } from './polled';
import { LoadProblem } from './problem';
import { dateTimeText } from './titles';

export function DeliveriesTab({ state }: { state: string }) {
  const { value, problem, refresh } = usePolled(() => api.deliveries(state), state);
  const items = value.value?.items;
  const retry = async (id: string) => {
    try {
      await api.retryDelivery(id);
      toast('The delivery is queued again.');
      await refresh();
    } catch (error) {
      report('The delivery was not queued', error);
    }
  };
  return (
    <>
      <Filters tab="deliveries" name="state" current={state} values={['failed', 'unknown', 'pending', 'sending', 'sent']} />
      {problem.value !== undefined && <LoadProblem what="The deliveries cannot be loaded" problem={problem.value} onRetry={() => void refresh()} />}
      {items?.length === 0 && <p class="muted">No delivery is in the state {state}.</p>}
      {items !== undefined && items.length > 0 && (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Deliveries">
          <table class="dense">
            <thead><tr><th scope="col">Created</th><th scope="col">Channel</th><th scope="col">Chat</th><th scope="col" class="align-right">Attempts</th><th scope="col">Error</th><th scope="col"><span class="off-screen">Actions</span></th></tr></thead>
            <tbody>
              {items.map((item) => (
                <tr>
                  <td>{dateTimeText(item.createdAt)}</td>
                  <td>{item.channel}</td>
                  <td><bdi class="cut">{item.chat}</bdi></td>
                  <td class="align-right">{item.attempts}</td>
                  <td class="wide"><bdi>{item.error ?? ''}</bdi></td>
                  <td class="cell-actions">
                    {item.conversationId !== undefined && <a href={hashOf({ name: 'conversation', id: item.conversationId })}>Open</a>}
                    {['failed', 'unknown'].includes(item.state) && (
                      <button type="button" class="text-button" onClick={() => void retry(item.id)}>Retry</button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

export function SchedulesTab() {
  const { value, problem, refresh } = usePolled(api.schedules, 'schedules', 15_000);
  const items = value.value?.items;
  const remove = async (id: string) => {
    try {
      await api.deleteSchedule(id);
      await refresh();
    } catch (error) {
      report('The schedule was not deleted', error);
    }
  };
  return (
    <>
      {problem.value !== undefined && <LoadProblem what="The schedules cannot be loaded" problem={problem.value} onRetry={() => void refresh()} />}
      {items?.length === 0 && <p class="muted">There are no schedules. An agent or a call of the API can create one.</p>}
      {items !== undefined && items.length > 0 && (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Schedules">
          <table class="dense">
            <thead><tr><th scope="col">Next</th><th scope="col">When</th><th scope="col">Text</th><th scope="col">Author</th><th scope="col"><span class="off-screen">Actions</span></th></tr></thead>
            <tbody>
              {items.map((item) => (
                <tr>
                  <td>{item.nextAt === undefined ? 'none' : dateTimeText(item.nextAt)}</td>
                  <td><code>{item.cron ?? item.at}</code> <span class="muted">{item.timeZone}</span></td>
                  <td class="wide"><bdi>{item.text}</bdi></td>
                  <td><bdi>{item.author}</bdi></td>
                  <td class="cell-actions">
                    <a href={hashOf({ name: 'conversation', id: item.conversationId })}>Open</a>
                    <button type="button" class="text-button" onClick={() => void remove(item.id)}>Delete</button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

/** The audit log is listed from its beginning, so its pages are read up to the end. */
async function wholeLog(): Promise<AuditEntry[]> {
  let entries: AuditEntry[] = [];
  let cursor: string | undefined;
  do {
    const page = await api.audit(cursor);
    entries = [...entries, ...page.items].slice(-1_000);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return entries.reverse();
}

export function AuditTab({ filter }: { filter: Record<string, string> }) {
  const { value, problem, refresh } = usePolled(wholeLog, 'log', 30_000);
  const wanted = useSignal(filter['q'] ?? '');
  const setWanted = (text: string) => {
    wanted.value = text;
    go({ name: 'operate', tab: 'log', filter: text === '' ? {} : { q: text } }, { replace: true });
  };
  const matches = (entry: AuditEntry) =>
    `${entry.actor} ${entry.action} ${entry.subject} ${entry.origin}`.toLowerCase().includes(wanted.value.toLowerCase());
  const items = value.value?.filter(matches);
  return (
    <>
      <input type="search" class="filter" aria-label="Filter the log" placeholder="Filter" value={wanted.value} onInput={(event) => setWanted(event.currentTarget.value)} />
      {problem.value !== undefined && <LoadProblem what="The log cannot be loaded" problem={problem.value} onRetry={() => void refresh()} />}
      {items?.length === 0 && <p class="muted">No entry matches.</p>}
      {items !== undefined && items.length > 0 && (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Audit log">
          <table class="dense">
            <thead><tr><th scope="col">Time</th><th scope="col">Action</th><th scope="col">Who</th><th scope="col">On</th><th scope="col">From</th></tr></thead>
            <tbody>
              {items.slice(0, 300).map((entry) => (
                <tr>
                  <td>{dateTimeText(entry.at)}</td>
                  <td><code>{entry.action}</code></td>
                  <td><bdi class="cut" title={entry.actor}>{entry.actor}</bdi></td>
                  <td><bdi class="cut" title={entry.subject}>{entry.subject}</bdi></td>
                  <td>{entry.origin}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
