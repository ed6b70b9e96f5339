// What may go wrong around the page: crashes, networks, sleep, sign-ins, several tabs.

import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { Gateway, TOKEN } from './gateway';
import { Tab, launch, until } from './page';
import { FIRST_HALF } from './scripts';

let gateway: Gateway;
let browser: Browser;
let tab: Tab;

beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
});
beforeEach(async () => {
  gateway = new Gateway();
  await gateway.start();
  tab = await Tab.open(browser, gateway);
});
afterEach(async () => {
  await tab.context.close();
  await gateway.remove();
});

describe('a gateway that is killed', () => {
  it('in mid-answer leaves no gap and no repetition', async () => {
    const id = await gateway.conversation('halves');
    await tab.conversation(id);
    await tab.write('go');
    await tab.sees(FIRST_HALF.trim());
    await gateway.kill();
    await tab.page.locator('.bar.warning').waitFor();
    await gateway.start();
    gateway.release('go-half');
    // The turn was interrupted: the chat is informed, and its text stays.
    await tab.page.locator('.turn-end').waitFor();
    expect(await tab.count(FIRST_HALF.trim())).toBe(1);
    const before = await tab.transcript();
    await tab.page.reload();
    await tab.page.locator('.turn-end').waitFor();
    await until(async () => (await tab.transcript()) === before, 'the same transcript after a reload');
    await tab.check();
  });

  it('loses no message that was typed meanwhile: it is sent once when the gateway is back', async () => {
    const id = await gateway.conversation('echo');
    await gateway.ask(id, 'a message before');
    await tab.conversation(id);
    // The page has loaded the conversation.
    await tab.sees('You said: a message before');
    await gateway.kill();
    await tab.write('typed while it was down');
    await tab.page.locator('.send-problem', { hasText: 'Not sent yet' }).waitFor();
    expect(await tab.composer.inputValue()).toBe('typed while it was down');
    await gateway.start();
    await tab.sees('You said: typed while it was down');
    await tab.idle();
    expect(await tab.count('typed while it was down')).toBe(2);
    expect(await tab.composer.inputValue()).toBe('');
    await tab.check();
  });
});

describe('a draft', () => {
  it('survives a reload and a change of the conversation', async () => {
    const [one, two] = [await gateway.conversation('echo', 'One'), await gateway.conversation('echo', 'Two')];
    await tab.conversation(one);
    await tab.composer.fill('not sent yet');
    await tab.page.locator('.entry', { hasText: 'Two' }).click();
    await until(async () => (await tab.composer.inputValue()) === '', 'the other conversation has no draft');
    await tab.page.goBack();
    await until(async () => (await tab.composer.inputValue()) === 'not sent yet', 'the draft is back');
    await tab.page.reload();
    await until(async () => (await tab.composer.inputValue()) === 'not sent yet', 'the draft survives');
    expect(two).not.toBe(one);
    await tab.check();
  });

  it('is sent with the same key again after a failure, and is one message', async () => {
    const id = await gateway.conversation('echo');
    const keys: string[] = [];
    let isAnswerLost = true;
    await tab.page.route('**/messages', async (route) => {
      keys.push(route.request().headers()['idempotency-key'] ?? '');
      const response = await route.fetch();
      if (isAnswerLost) await route.fulfill({ status: 500, contentType: 'application/problem+json', body: '{"code":"INTERNAL","detail":"the answer is lost"}' });
      else await route.fulfill({ response });
      isAnswerLost = false;
    });
    await tab.conversation(id);
    await tab.write('only once');
    await tab.page.locator('.send-problem', { hasText: 'the answer is lost' }).waitFor();
    await tab.page.reload();
    await until(async () => (await tab.composer.inputValue()) === 'only once', 'the draft survives');
    await tab.composer.press('Enter');
    await until(async () => (await tab.composer.inputValue()) === '', 'the draft is accepted');
    await tab.sees('You said: only once');
    await tab.idle();
    expect(new Set(keys).size).toBe(1);
    expect(keys).toHaveLength(2);
    expect(await tab.count('only once')).toBe(2);
  });

  it('survives the end of the session and the sign-in after it', async () => {
    const id = await gateway.conversation('echo');
    await tab.conversation(id);
    await tab.composer.fill('after the sign-in');
    await tab.context.clearCookies();
    await tab.composer.press('Enter');
    await tab.page.getByLabel('Token').fill('tms_wrong');
    await tab.page.getByRole('button', { name: 'Sign in' }).click();
    await tab.page.getByText('This token is not valid.').waitFor();
    await tab.page.getByLabel('Token').fill(TOKEN);
    await tab.page.getByRole('button', { name: 'Sign in' }).click();
    await tab.page.locator('.sign-in').waitFor({ state: 'detached' });
    expect(await tab.composer.inputValue()).toBe('after the sign-in');
    await tab.composer.press('Enter');
    await tab.sees('You said: after the sign-in');
    const stored = await tab.page.evaluate(() => JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage }) + document.cookie);
    expect(stored).not.toContain(TOKEN);
    await tab.check();
  });
});

describe('a connection', () => {
  it('that is offline and comes back continues after the last event', async () => {
    const id = await gateway.conversation('slow');
    await tab.conversation(id);
    await tab.write('go');
    await tab.sees('First part.');
    await tab.context.setOffline(true);
    await tab.page.locator('.bar', { hasText: 'offline' }).waitFor();
    expect(await tab.composer.isEditable()).toBe(true);
    gateway.release('go-slow');
    await tab.context.setOffline(false);
    await tab.sees('Second part.');
    await tab.idle();
    expect(await tab.count('First part.')).toBe(1);
  });

  it('that stalls without closing is replaced', async () => {
    const id = await gateway.conversation('slow');
    let stalls = 0;
    // The first stream never ends and sends nothing.
    await tab.page.addInitScript(() => {
      const real = window.fetch;
      let isFirst = true;
      window.fetch = async (input, init) => {
        if (String(input).includes('/events') && isFirst) {
          isFirst = false;
          return new Response(new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(': connected\n\n')) }));
        }
        return real(input, init);
      };
    });
    await tab.page.clock.install();
    await tab.goto(`#/c/${id}`);
    tab.page.on('request', (request) => { if (request.url().includes('/events')) stalls += 1; });
    await tab.page.locator('.conversation[data-live]').waitFor();
    await gateway.send(id, 'go');
    expect(stalls).toBe(0);
    await tab.page.clock.fastForward(60_000);
    await until(() => stalls > 0, 'the watchdog connects again');
    await tab.page.clock.resume();
    await tab.sees('First part.');
  });

  it('is one for each of four tabs, which the others take over: the eighth tab works', async () => {
    const id = await gateway.conversation('echo');
    await gateway.ask(id, 'for all tabs');
    const tabs = [tab];
    for (let index = 0; index < 7; index += 1) tabs.push(await tab.another());
    for (const one of tabs) {
      await one.page.bringToFront();
      await one.conversation(id);
      await one.sees('You said: for all tabs');
    }
    const streams = await gateway.call<{ subscribers: number }>('GET', '/v1/status');
    expect(tabs).toHaveLength(8);
    expect(streams.subscribers).toBeLessThanOrEqual(5);
  });
});

it('a page that is older than its gateway offers to load the new one', async () => {
  const id = await gateway.conversation('echo');
  await tab.conversation(id);
  await tab.page.locator('.conversation[data-live]').waitFor();
  await tab.page.route('**/page-build.json', (route) => route.fulfill({ json: { build: 'another' } }));
  await tab.page.evaluate(() => window.dispatchEvent(new Event('online')));
  await tab.page.locator('.bar', { hasText: 'new version' }).getByRole('button', { name: 'Reload' }).waitFor();
});

it('a link with the token in its fragment signs in and leaves no trace of it', async () => {
  await tab.context.clearCookies();
  await tab.goto(`#token=${TOKEN}`);
  await tab.page.getByRole('heading', { name: 'What should the agent do?' }).waitFor();
  expect(tab.page.url()).not.toContain('token');
});

it('a message that is written with an input method is sent by the second Enter', async () => {
  const id = await gateway.conversation('echo');
  await tab.conversation(id);
  await tab.composer.focus();
  const session = await tab.context.newCDPSession(tab.page);
  await session.send('Input.imeSetComposition', { text: 'にほんご', selectionStart: 4, selectionEnd: 4 });
  await session.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', windowsVirtualKeyCode: 229, key: 'Enter', code: 'Enter' });
  expect(await tab.page.locator('.message').count()).toBe(0);
  await session.send('Input.insertText', { text: '日本語' });
  expect(await tab.page.locator('.message').count()).toBe(0);
  await tab.composer.press('Enter');
  await tab.sees('You said: 日本語');
});
