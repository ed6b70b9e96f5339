// Nothing that an agent or a stranger writes runs, loads or breaks anything; and the page is accessible.

import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { Gateway } from './gateway';
import { Tab, launch } from './page';
import { ATTACKS } from './scripts';

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

async function isHacked(): Promise<unknown> {
  return tab.page.evaluate(() => (window as unknown as { hacked?: number }).hacked);
}

describe('hostile text', () => {
  it('in any field of an agent or a stranger is shown as text', async () => {
    const id = await gateway.conversation('attack', ATTACKS.slice(0, 400));
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.write(ATTACKS);
    await tab.page.locator('.decision').waitFor();
    await tab.openFolds();
    await tab.page.getByRole('button', { name: 'Allow once' }).click();
    const question = tab.page.locator('.decision.question');
    await question.locator('input[type="radio"]').first().check();
    await question.getByRole('button', { name: 'Answer' }).click();
    await tab.page.locator('.turn-end').last().waitFor();
    await tab.openFolds();
    await tab.settled();
    expect(await isHacked()).toBeUndefined();
    const found = await tab.page.evaluate(() => ({
      elements: document.querySelectorAll('.main :is(script, iframe, style, object, embed, base)').length,
      images: document.querySelectorAll('.main img').length,
      links: [...document.querySelectorAll<HTMLAnchorElement>('.main a[href]')].map((link) => link.protocol),
      handlers: [...document.querySelectorAll('.main *')].filter((element) => [...element.attributes].some((attribute) => attribute.name.startsWith('on'))).length,
    }));
    expect(found).toMatchObject({ elements: 0, images: 0, handlers: 0 });
    expect(found.links.filter((protocol) => !['http:', 'https:', 'mailto:'].includes(protocol))).toEqual([]);
    await tab.check();
  });

  it('in names and addresses does no harm', async () => {
    tab = await Tab.open(browser, gateway);
    await tab.goto(`#/c/${encodeURIComponent('<img src=x onerror=window.hacked=1>')}`);
    await tab.page.getByRole('heading').first().waitFor();
    await tab.goto('#/operate/%3Cscript%3E?state=%3Cimg%3E');
    await tab.page.locator('#search').fill('<img src=nowhere onerror=window.hacked=1>');
    await tab.page.getByText('No conversation matches.').waitFor();
    expect(await isHacked()).toBeUndefined();
    expect(tab.problems).toEqual([]);
  });

  it('cannot reach another site: its images and links load nothing by themselves', async () => {
    const id = await gateway.conversation('attack');
    await gateway.send(id, 'go');
    tab = await Tab.open(browser, gateway);
    await tab.conversation(id);
    await tab.page.locator('.image-link').first().waitFor();
    // Requests to other hosts are problems of the tab.
    await tab.check();
  });
});

describe('every state has no findings of axe', () => {
  const states: { script: string; wait: string; open?: boolean }[] = [
    { script: 'work', wait: '.turn-end', open: true },
    { script: 'ask', wait: '.decision' },
    { script: 'askedit', wait: '.decision .diff-line' },
    { script: 'question', wait: '.decision.question' },
    { script: 'fail', wait: '.failure' },
    { script: 'hang', wait: '.composer .stop' },
    { script: 'rtl', wait: '.turn-end' },
  ];
  for (const { script, wait, open } of states) {
    it(`in a conversation: ${script}`, async () => {
      const id = await gateway.conversation(script);
      await gateway.send(id, 'Please fix the failing test.');
      for (const view of [{ width: 1280, dark: false }, { width: 390, height: 844, dark: true }]) {
        tab = await Tab.open(browser, gateway, view);
        await tab.conversation(id);
        await tab.page.locator(wait).first().waitFor();
        if (open === true) await tab.openFolds();
        expect(await tab.axe()).toEqual([]);
        await tab.check();
        await tab.context.close();
      }
    });
  }

  it('on the other pages', async () => {
    const id = await gateway.conversation('echo');
    await gateway.ask(id, 'for the usage');
    for (const dark of [false, true]) {
      tab = await Tab.open(browser, gateway, { dark, width: dark ? 390 : 1280 });
      for (const hash of ['', '#/usage', '#/operate/overview', '#/operate/turns', '#/operate/deliveries', '#/operate/schedules', '#/operate/agents', '#/operate/log', '#/c/00000000-0000-7000-8000-000000000000']) {
        await tab.goto(hash);
        await tab.page.getByRole('heading', { level: 1 }).first().waitFor();
        await tab.page.waitForLoadState('networkidle');
        expect(await tab.axe(), hash).toEqual([]);
      }
      await tab.check();
      await tab.context.close();
    }
  });

  it('in the sign-in, the help and the list on a phone', async () => {
    tab = await Tab.open(browser, gateway, { signedOut: true });
    await tab.goto('');
    await tab.page.getByLabel('Token').waitFor();
    expect(await tab.axe()).toEqual([]);
    await tab.context.close();
    tab = await Tab.open(browser, gateway, { width: 390, height: 844, touch: true });
    await tab.goto('');
    await tab.page.getByRole('button', { name: 'Conversations' }).click();
    await tab.page.getByRole('link', { name: 'New conversation', exact: true }).waitFor();
    expect(await tab.axe()).toEqual([]);
    await tab.page.keyboard.press('Escape');
    await tab.page.locator('body').press('?');
    await tab.page.getByRole('heading', { name: 'Keyboard' }).waitFor();
    expect(await tab.axe()).toEqual([]);
  });
});
