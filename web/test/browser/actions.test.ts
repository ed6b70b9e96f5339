// What a person does besides sending: files, edits, forks, retries, settings, search, keys.

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

async function open(id: string): Promise<void> {
  tab = await Tab.open(browser, gateway);
  await tab.conversation(id);
}

const idOf = () => new URL(tab.page.url()).hash.split('/').at(-1) ?? '';

it('files are attached by drop and by paste, and downloaded again', async () => {
  await open(await gateway.conversation('echo'));
  for (const [type, name] of [['drop', 'notes.txt'], ['paste', 'picture.png']] as const) {
    const data = await tab.page.evaluateHandle((file) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([`content of ${file}`], file, { type: 'text/plain' }));
      return transfer;
    }, name);
    if (type === 'drop') await tab.page.dispatchEvent('.composer', 'drop', { dataTransfer: data });
    else {
      await tab.page.evaluate((transfer) => {
        document.getElementById('composer')?.dispatchEvent(new ClipboardEvent('paste', { clipboardData: transfer, bubbles: true, cancelable: true }));
      }, data);
    }
    await tab.page.locator('.attachment', { hasText: name }).waitFor();
  }
  await tab.page.getByRole('button', { name: 'Remove picture.png' }).click();
  await tab.write('with a file');
  await tab.sees('You said:');
  const download = tab.page.waitForEvent('download');
  await tab.page.locator('.message .attachment', { hasText: 'notes.txt' }).click();
  expect((await download).suggestedFilename()).toBe('notes.txt');
  await tab.check();
});

it('an edited message is sent in a fork, and the original stays', async () => {
  const id = await gateway.conversation('echo', 'Original');
  await gateway.ask(id, 'first message');
  await gateway.ask(id, 'second message');
  await open(id);
  await tab.sees('You said: second message');
  const row = tab.page.locator('.row-message', { hasText: 'second message' });
  await row.hover();
  await row.getByRole('button', { name: 'Edit and send in a fork' }).click();
  await tab.page.getByLabel('Edited message').fill('another second message');
  await tab.page.getByRole('button', { name: 'Send in a fork', exact: true }).click();
  // The agent of the fork gets the history with the message.
  await tab.page.locator('.answer', { hasText: 'another second message' }).waitFor();
  expect(idOf()).not.toBe(id);
  await tab.sees('You said: first message');
  expect(await tab.count('You said: second message')).toBe(0);
  await tab.page.getByText('Fork of another conversation').click();
  await tab.sees('You said: second message');
  await tab.check();
});

it('a fork has everything up to its turn', async () => {
  const id = await gateway.conversation('echo', 'To be forked');
  await gateway.ask(id, 'first message');
  await gateway.ask(id, 'second message');
  await open(id);
  await tab.sees('You said: second message');
  await tab.page.getByRole('button', { name: 'Fork from here' }).first().click();
  await until(() => idOf() !== id, 'the fork is open');
  await tab.sees('You said: first message');
  expect(await tab.count('second message')).toBe(0);
  await tab.write('in the fork');
  await tab.page.locator('.answer', { hasText: 'in the fork' }).waitFor();
  await tab.check();
});

it('a failed turn shows its error and can be retried', async () => {
  await open(await gateway.conversation('fail'));
  await tab.write('go');
  const failure = tab.page.locator('.failure');
  await failure.getByText('max_tokens').waitFor();
  await tab.page.getByRole('button', { name: 'Retry' }).click();
  await tab.sees('Queued again');
  await failure.getByText('max_tokens').waitFor();
  await tab.check();
});

it('a queued message is taken out of the queue and edited', async () => {
  await open(await gateway.conversation('hang'));
  await tab.write('one');
  await tab.sees('This takes long.');
  await tab.write('two, which waits');
  const row = tab.page.locator('.row-message', { hasText: 'two, which waits' });
  await row.hover();
  await row.getByRole('button', { name: 'Edit the queued message' }).click();
  await until(async () => (await tab.composer.inputValue()) === 'two, which waits', 'it is in the composer');
  await tab.check();
});

it('a message is sent into the running turn by Control and Enter', async () => {
  await open(await gateway.conversation('hang'));
  await tab.write('one');
  await tab.sees('This takes long.');
  await tab.composer.fill('and this as well');
  await tab.page.getByRole('button', { name: 'Queue' }).waitFor();
  await tab.composer.press('Control+Enter');
  await tab.page.locator('.row-message', { hasText: 'and this as well' }).getByText('Went into the running turn').waitFor();
  await tab.check();
});

it('a plan shows the step that runs, above the composer', async () => {
  await open(await gateway.conversation('planning'));
  await tab.write('go');
  const plan = tab.page.locator('.current-plan');
  await plan.getByText('Find the cause').waitFor();
  await plan.getByText('1 of 4 done').waitFor();
  gateway.release('go-plan');
  await plan.waitFor({ state: 'detached' });
  await tab.page.locator('.row-plan', { hasText: '4 of 4 done' }).waitFor();
  await tab.check();
});

describe('a conversation', () => {
  it('is renamed, found by search, and deleted', async () => {
    const id = await gateway.conversation('echo', 'Old name');
    await gateway.ask(id, 'a needle in the text');
    await open(id);
    await tab.page.getByRole('button', { name: 'More' }).click();
    await tab.page.getByRole('button', { name: 'Rename' }).click();
    await tab.page.getByLabel('Title', { exact: true }).fill('New name');
    await tab.page.getByLabel('Title', { exact: true }).press('Enter');
    await tab.page.getByRole('heading', { name: 'New name' }).waitFor();
    await tab.page.keyboard.press('Control+k');
    await tab.page.keyboard.type('needle');
    await until(async () => (await tab.page.locator('.entry').count()) === 1, 'the search finds one');
    await tab.page.locator('.entry', { hasText: 'New name' }).waitFor();
    await tab.page.locator('#search').fill('');
    await tab.page.locator('.head-menu button').first().click();
    await tab.page.getByRole('button', { name: 'Delete' }).click();
    await tab.page.getByRole('button', { name: 'Delete for good?' }).click();
    await tab.page.getByRole('heading', { name: 'What should the agent do?' }).waitFor();
    await until(async () => (await tab.page.locator('.entry', { hasText: 'New name' }).count()) === 0, 'it is gone');
    await tab.check();
  });

  it('changes its model and its permission', async () => {
    const id = await gateway.conversation('echo', 'Settings');
    await open(id);
    await tab.page.getByRole('button', { name: 'Model: echo' }).click();
    await tab.page.getByLabel('Model', { exact: true }).fill('markdown');
    await tab.page.getByLabel('Model', { exact: true }).press('Enter');
    await tab.page.getByRole('button', { name: 'Model: markdown' }).waitFor();
    await tab.page.getByLabel('Permission').selectOption('read-only');
    await until(async () => (await gateway.call<{ permission?: string; model?: string }>('GET', `/v1/conversations/${id}`)).permission === 'read-only', 'it is changed');
    await tab.write('go');
    await tab.page.locator('.answer table').waitFor();
    await tab.check();
  });
});

it('keys open the help, the composer and blocks, but not in a text field', async () => {
  const id = await gateway.conversation('echo', 'Keys');
  await gateway.ask(id, 'for the keys');
  await open(id);
  await tab.sees('You said: for the keys');
  await tab.composer.fill('j?/');
  expect(await tab.page.locator('.help').count()).toBe(0);
  await tab.composer.evaluate((field) => field.blur());
  await tab.page.keyboard.press('k');
  expect(await tab.page.evaluate(() => document.activeElement?.closest('.row') !== null)).toBe(true);
  await tab.page.keyboard.press('/');
  await until(() => tab.page.evaluate(() => document.activeElement?.id === 'composer'), 'the composer has the focus');
  await tab.composer.evaluate((field) => field.blur());
  await tab.page.keyboard.press('?');
  await tab.page.getByRole('heading', { name: 'Keyboard' }).waitFor();
  await tab.page.keyboard.press('Escape');
  await tab.page.locator('.help').waitFor({ state: 'detached' });
});

it('a token that may only read changes nothing', async () => {
  const id = await gateway.conversation('ask', 'Read only');
  await gateway.send(id, 'go');
  const { secret } = await gateway.call<{ secret: string }>('POST', '/v1/tokens', { owner: 'reader', scopes: ['read'] });
  tab = await Tab.open(browser, gateway, { signedOut: true });
  await tab.goto(`#token=${secret}`);
  await tab.page.locator('.entry', { hasText: 'Read only' }).click();
  await tab.page.locator('.decision', { hasText: 'Your token may not answer requests.' }).waitFor();
  await tab.page.getByText('Your token may read, but not send messages.').waitFor();
  expect(await tab.page.getByRole('button', { name: 'Allow once' }).count()).toBe(0);
  expect(await tab.page.getByRole('link', { name: 'Operation' }).count()).toBe(0);
  expect(tab.problems).toEqual([]);
});

it('the operator sees what runs and waits, and what was done', async () => {
  const id = await gateway.conversation('hang', 'A turn that runs');
  await gateway.send(id, 'go');
  tab = await Tab.open(browser, gateway);
  await tab.goto('#/operate/turns');
  await tab.page.locator('td', { hasText: 'A turn that runs' }).waitFor();
  await tab.page.getByRole('link', { name: 'Log' }).click();
  await tab.page.locator('code', { hasText: 'conversation.create' }).first().waitFor();
  await tab.page.getByLabel('Filter the log').fill('session.start');
  await until(async () => (await tab.page.locator('code', { hasText: 'conversation.create' }).count()) === 0, 'the log is filtered');
  expect(tab.page.url()).toContain('q=session.start');
  await tab.goto('#/usage');
  await tab.page.getByText(/Cost|No tokens/).first().waitFor();
  await tab.check();
});
