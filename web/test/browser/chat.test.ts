// A conversation: send, stream, stop, permit, reload in mid-answer, and a gateway that is killed in mid-answer.

import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { Gateway } from './gateway';
import { Tab, launch, until } from './page';
import { FIRST_HALF, SECOND_HALF } from './scripts';

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

describe('a message', () => {
  it('is sent from the first page, and its answer appears', async () => {
    tab = await Tab.open(browser, gateway);
    await tab.goto('');
    await tab.page.getByRole('heading', { name: 'What should the agent do?' }).waitFor();
    await tab.write('hello there');
    await tab.sees('You said: hello there');
    await tab.idle();
    expect(await tab.composer.inputValue()).toBe('');
    expect(await tab.count('hello there')).toBe(2);
    expect(await tab.page.title()).toContain('hello there');
    await tab.page.locator('.entry[aria-current="page"]', { hasText: 'hello there' }).waitFor();
    await tab.check();
  });

  it('streams in order and once', async () => {
    const id = await gateway.conversation('stream');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.write('go');
    await tab.sees(/word10 /);
    await tab.sees(/word299/);
    await tab.idle();
    const words = (await tab.page.locator('.answer').innerText()).match(/word\d+/g);
    expect(words).toEqual([...Array(300).keys()].map((index) => `word${index}`));
    await tab.check();
  });

  it('that is sent while a turn runs is queued, and both are answered', async () => {
    const id = await gateway.conversation('slow');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.write('one');
    await tab.sees('First part.');
    await tab.write('two');
    await tab.page.locator('.turn-state', { hasText: 'Queued' }).waitFor();
    gateway.release('go-slow');
    await until(async () => (await tab.count('Second part.')) === 2, 'both answers');
    await tab.check();
  });
});

describe('a running turn', () => {
  it('is stopped by its button, also after a reload', async () => {
    const id = await gateway.conversation('hang');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.write('go');
    await tab.sees('This takes long.');
    await tab.page.reload();
    await tab.sees('This takes long.');
    await tab.page.getByRole('button', { name: 'Stop' }).click();
    await tab.page.locator('.turn-state', { hasText: 'Stopped' }).waitFor();
    await tab.page.getByRole('button', { name: 'Retry' }).waitFor();
    expect(await tab.count('This takes long.')).toBe(1);
    await tab.check();
  });

  it('is stopped by Escape twice', async () => {
    const id = await gateway.conversation('hang');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.write('go');
    await tab.sees('This takes long.');
    await tab.page.keyboard.press('Escape');
    await tab.page.keyboard.press('Escape');
    await tab.page.locator('.turn-state', { hasText: 'Stopped' }).waitFor();
  });

  it('continues after a reload in mid-answer, without a gap or a repetition', async () => {
    const id = await gateway.conversation('halves');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.write('go');
    await tab.sees(FIRST_HALF.trim());
    await tab.page.reload();
    await tab.sees(FIRST_HALF.trim());
    gateway.release('go-half');
    await tab.sees(SECOND_HALF);
    await tab.idle();
    expect(await tab.page.locator('.answer').innerText()).toBe(FIRST_HALF + SECOND_HALF);
    await tab.check();
  });
});

describe('a permission request', () => {
  it('is allowed by its button; Enter in the composer allows nothing', async () => {
    const id = await gateway.conversation('ask');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.write('go');
    const card = tab.page.locator('.decision');
    await card.getByText('rm -rf target').waitFor();
    await until(async () => (await tab.page.title()).startsWith('(1)'), 'the title counts who waits');
    await tab.composer.focus();
    await tab.composer.press('Enter');
    await tab.composer.press('a');
    await tab.composer.fill('');
    await tab.composer.press('Enter');
    await expectOpen(id);
    await card.getByRole('button', { name: 'Allow once' }).click();
    await tab.sees('The build is done.');
    await card.waitFor({ state: 'detached' });
    await tab.page.locator('.outcome.done', { hasText: 'Allowed by operator' }).waitFor();
    await tab.check();
  });

  it('is denied by its key inside the card', async () => {
    const id = await gateway.conversation('ask');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.write('go');
    const card = tab.page.locator('.decision');
    await card.getByRole('button', { name: 'Allow once' }).focus();
    await tab.page.keyboard.press('d');
    await tab.page.locator('.request-row', { hasText: 'Denied' }).waitFor();
    await tab.check();
  });

  it('that two tabs answer is answered once, and the second one shows who did', async () => {
    const id = await gateway.conversation('ask');
    await gateway.send(id, 'go');
    tab = await Tab.open(browser, gateway);
    const other = await tab.another();
    await tab.conversation(id);
    await other.conversation(id);
    const [first, second] = [tab, other].map((one) => one.page.locator('.decision'));
    await first?.getByText('rm -rf target').waitFor();
    await second?.getByText('rm -rf target').waitFor();
    // The second tab does not get the answer before it answers itself.
    await other.page.route('**/events?*', (route) => route.abort());
    await other.page.evaluate(() => window.dispatchEvent(new Event('online')));
    await first?.getByRole('button', { name: 'Deny' }).click();
    await first?.waitFor({ state: 'detached' });
    await second?.getByRole('button', { name: 'Allow once' }).click();
    await other.page.locator('.toast', { hasText: /too late.*Denied by/ }).waitFor();
    await tab.check();
  });

  it('is there again after a reload', async () => {
    const id = await gateway.conversation('askedit');
    await gateway.send(id, 'go');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.page.locator('.decision .diff-line.added').waitFor();
    await tab.page.reload();
    await tab.page.locator('.decision .diff-line.added').waitFor();
    await tab.page.getByRole('button', { name: 'Allow once' }).click();
    await tab.sees('Edited.');
    await tab.check();
  });

  it('may be a question with choices', async () => {
    const id = await gateway.conversation('question');
    await gateway.send(id, 'go');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    const card = tab.page.locator('.decision.question');
    await card.getByText('PostgreSQL').click();
    await card.getByText('Unit').click();
    await card.getByText('Browser').click();
    await card.getByRole('button', { name: 'Answer' }).click();
    await tab.sees('Thank you.');
    await tab.sees('PostgreSQL, Unit, Browser');
    await tab.check();
  });

  async function expectOpen(conversationId: string): Promise<void> {
    const found = await gateway.call<{ items: unknown[] }>('GET', `/v1/permission-requests?state=open&conversationId=${conversationId}`);
    expect(found.items).toHaveLength(1);
  }
});
