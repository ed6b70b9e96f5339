// Long things: 100,000 events, huge outputs, long words; scrolling and selections while an answer streams.

import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { Gateway } from './gateway';
import { Tab, launch, until } from './page';

const gateway = new Gateway();
let browser: Browser;
let tab: Tab;

beforeAll(async () => {
  await gateway.start();
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await gateway.remove();
});
afterEach(async () => {
  await tab?.context.close();
});

/** Returns a log of 100,000 events: 1,000 turns with text, tool calls and their results. */
function longLog(): string[] {
  const log: string[] = [];
  const add = (type: string, turn: number, fields: Record<string, unknown>) => {
    const seq = log.length + 1;
    const turnId = `00000000-0000-7000-8000-${String(turn).padStart(12, '0')}`;
    log.push(JSON.stringify({ seq, turnId, at: new Date(1_767_225_600_000 + seq * 50).toISOString(), type, ...fields }));
  };
  for (let turn = 0; turn < 1_000; turn += 1) {
    add('turn_queued', turn, { messageId: `m${turn}`, author: 'operator', text: `Message ${turn}` });
    add('turn_started', turn, { attempt: 1, agent: 'claude', worker: 'w' });
    for (let step = 0; step < 16; step += 1) {
      for (let delta = 0; delta < 4; delta += 1) add('text', turn, { text: `Sentence ${delta} of step ${step} in turn ${turn}. `, messageId: `a${step}` });
      add('tool_use', turn, { toolId: `t${step}`, toolName: 'Bash', kind: 'execute', input: { command: `cargo test step_${step}` } });
      add('tool_result', turn, { toolId: `t${step}`, output: 'test result: ok\n'.repeat(3), isError: false });
    }
    add('done', turn, { result: { text: '', finalText: '', durationMs: 5_000, aborted: false, isError: false } });
    add('turn_finished', turn, { state: 'done' });
  }
  return log;
}

it('a conversation of 100,000 events opens at its end, scrolls, and reaches its beginning, with few nodes at any time', async () => {
  const log = longLog();
  expect(log.length).toBe(100_000);
  const id = await gateway.conversation('echo', 'Long');
  tab = await Tab.open(browser, gateway);
  await tab.page.route(`**/v1/conversations/${id}`, async (route) => {
    const details = (await (await route.fetch()).json()) as Record<string, unknown>;
    await route.fulfill({ json: { ...details, lastSeq: log.length, oldestSeq: 1 } });
  });
  await tab.page.route(`**/v1/conversations/${id}/events?*`, async (route) => {
    const after = Number(new URL(route.request().url()).searchParams.get('after'));
    const events = log.slice(after, after + 20_000);
    const body = events.map((json, index) => `id: ${after + 1 + index}\nevent: x\ndata: ${json}\n\n`).join('');
    if (events.length > 0) await route.fulfill({ contentType: 'text/event-stream', body });
    // Nothing more follows: the connection stays open.
  });
  await tab.conversation(id);
  await tab.sees(/in turn 999/);
  await until(() => tab.page.evaluate(() => {
    const view = document.querySelector('.transcript');
    return view !== null && view.scrollHeight - view.scrollTop - view.clientHeight < 2;
  }), 'it shows the end');
  const nodes = () => tab.page.evaluate(() => document.querySelectorAll('.transcript *').length);
  expect(await nodes()).toBeLessThan(4_000);
  await tab.page.locator('.transcript').hover();
  // A page that renders all rows has more than 100,000 nodes, and each step takes seconds.
  for (let step = 0; step < 20; step += 1) {
    await tab.page.mouse.wheel(0, -900);
    expect(await nodes()).toBeLessThan(4_000);
  }
  await tab.page.waitForFunction(() => document.querySelector('.transcript')?.getAttribute('data-following') === 'false');
  const rows = async () => Number(await tab.page.locator('.transcript').getAttribute('data-rows'));
  const before = await rows();
  await tab.page.evaluate(() => { const view = document.querySelector('.transcript'); if (view) view.scrollTop = 0; });
  await until(async () => (await rows()) > before, 'earlier events are loaded');
  expect(await nodes()).toBeLessThan(4_000);
});

describe('the transcript', () => {
  it('follows its end, stays where a person reads, and offers the new output', async () => {
    const id = await gateway.conversation('markdown');
    for (let turn = 0; turn < 4; turn += 1) await gateway.ask(id, `Message ${turn}`);
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.sees('Message 3');
    const gap = () => tab.page.evaluate(() => {
      const view = document.querySelector('.transcript') as HTMLElement;
      return Math.round(view.scrollHeight - view.scrollTop - view.clientHeight);
    });
    await until(async () => (await gap()) <= 1, 'it is at its end');
    await tab.page.locator('.transcript').hover();
    await tab.page.mouse.wheel(0, -700);
    await until(async () => (await gap()) > 300, 'it is scrolled');
    await tab.page.waitForTimeout(500);
    const top = () => tab.page.evaluate(() => {
      const view = document.querySelector('.transcript') as HTMLElement;
      const { top: edge } = view.getBoundingClientRect();
      const row = [...document.querySelectorAll<HTMLElement>('.row')].find((one) => one.getBoundingClientRect().bottom > edge + 40);
      return [row?.dataset['key'], Math.round(row?.getBoundingClientRect().top ?? 0)];
    });
    const place = await top();
    await gateway.ask(id, 'Message 4');
    await tab.page.getByRole('button', { name: 'New output' }).waitFor();
    expect(await top()).toEqual(place);
    await tab.page.getByRole('button', { name: 'New output' }).click();
    await until(async () => (await gap()) <= 1, 'it is at its end again');
    await tab.sees('Message 4');
    await tab.check();
  });

  it('does not follow again when its own scroll ends after a person has begun to scroll', async () => {
    const id = await gateway.conversation('markdown');
    for (let turn = 0; turn < 4; turn += 1) await gateway.ask(id, `Message ${turn}`);
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.sees('Message 3');
    const following = await tab.page.locator('.transcript').evaluate(async (view) => {
      view.dispatchEvent(new WheelEvent('wheel', { deltaY: -10 }));
      view.dispatchEvent(new Event('scrollend'));
      await new Promise(requestAnimationFrame);
      return (view as HTMLElement).dataset['following'];
    });
    expect(following).toBe('false');
    await tab.page.locator('.transcript').evaluate(async (view) => {
      const rest = new Promise((resolve) => { view.addEventListener('scrollend', resolve, { once: true }); });
      view.scrollTop -= 400;
      await rest;
    });
    await tab.page.locator('.transcript').evaluate((view) => { view.scrollTop = view.scrollHeight; });
    await tab.page.locator('.transcript[data-following="true"]').waitFor();
  });

  it('keeps a selection while 100 deltas arrive', async () => {
    const id = await gateway.conversation('selection');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.write('go');
    await tab.sees('A paragraph that a person selects.');
    await tab.page.locator('.answer p').first().selectText();
    gateway.release('go-select');
    await tab.sees(/delta119/);
    expect(await tab.page.evaluate(() => getSelection()?.toString().trim())).toBe('A paragraph that a person selects.');
  });

  it('extends an open block of code in place, and colors it when it is closed', async () => {
    const id = await gateway.conversation('code');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.write('go');
    await tab.page.locator('.code-block').waitFor();
    await tab.page.locator('.code-block code').evaluate((code) => { (code as unknown as { mark: boolean }).mark = true; });
    gateway.release('go-code');
    await tab.page.locator('.code-block', { hasText: 'let b = 2;' }).waitFor();
    expect(await tab.page.locator('.code-block code').evaluate((code) => [(code as unknown as { mark: boolean }).mark, code.childNodes.length])).toEqual([true, 1]);
    gateway.release('go-code2');
    await tab.page.locator('.code-block .hljs-keyword').first().waitFor();
    await tab.check();
  });

  it('shows the beginning and the end of a huge output, and all of it in a window', async () => {
    const id = await gateway.conversation('huge');
    await gateway.ask(id, 'go');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.page.locator('.fold-line', { hasText: 'cat big.log' }).click();
    const output = tab.page.locator('.output-body');
    await output.getByText('line 199 of', { exact: false }).first().waitFor({ state: 'attached' });
    expect(await output.locator('.line').count()).toBeLessThanOrEqual(251);
    await tab.page.getByRole('button', { name: /hidden lines/ }).click();
    await tab.page.locator('.output-body.windowed').waitFor();
    await tab.page.locator('.output-body.windowed').evaluate((body) => { body.scrollTop = body.scrollHeight / 2; });
    await until(async () => (await output.innerText()).match(/line 5\d\d\d of/) !== null, 'the middle is shown');
    expect(await output.locator('.line').count()).toBeLessThan(200);
    await tab.page.locator('.fold-line', { hasText: 'base64' }).click();
    await tab.page.getByText('more characters').waitFor();
    await tab.check();
  });

  it('has room for long words, wide tables and right-to-left text on a phone', async () => {
    for (const script of ['words', 'rtl', 'work']) {
      const id = await gateway.conversation(script);
      await gateway.ask(id, `${'w'.repeat(300)} ${'word '.repeat(100)}`);
      tab = await Tab.open(browser, gateway, { width: 390, height: 844, touch: true });
      await tab.conversation(id);
      await tab.page.locator('.turn-end').last().waitFor();
      await tab.check();
      await tab.context.close();
    }
    const id = await gateway.conversation('rtl');
    await gateway.ask(id, 'שלום');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.page.locator('.turn-end').waitFor();
    expect(await tab.page.locator('.answer p').first().evaluate((element) => getComputedStyle(element).direction)).toBe('rtl');
  });
});
