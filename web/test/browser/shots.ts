// Pictures of each state of the page, in both themes and three widths: `cargo xtask page-shots DIRECTORY`.

import { mkdirSync } from 'node:fs';
import path from 'node:path';

import { afterAll, beforeAll, it } from 'vitest';
import type { Browser } from 'playwright-core';

import { Gateway } from './gateway';
import { type OpenOptions, Tab, launch } from './page';

const TARGET = process.env['PAGE_SHOTS'] ?? 'shots';
const ONLY = process.env['PAGE_SHOTS_ONLY']?.split(',');

const VIEWS: ({ name: string } & OpenOptions)[] = [
  { name: 'wide-light', width: 1280, height: 860, dark: false },
  { name: 'wide-dark', width: 1280, height: 860, dark: true },
  { name: 'tablet-light', width: 820, height: 1100, dark: false },
  { name: 'phone-light', width: 390, height: 844, dark: false, mobile: true, touch: true },
  { name: 'phone-dark', width: 390, height: 844, dark: true, mobile: true, touch: true },
];

interface Shot {
  name: string;
  hash: (gateway: Gateway) => Promise<string>;
  wait: string;
  prepare?: (tab: Tab) => Promise<void>;
  signedOut?: boolean;
  /** Other views than those of all states. */
  views?: typeof VIEWS;
}

const conversation = (script: string, title: string, text: string, ends = true) => async (gateway: Gateway) => {
  const id = await gateway.conversation(script, title);
  if (ends) await gateway.ask(id, text);
  else await gateway.send(id, text);
  return `#/c/${id}`;
};


const SHOTS: Shot[] = [
  { name: 'signin', hash: async () => '', wait: '.sign-in', signedOut: true },
  { name: 'new', hash: async () => '', wait: '.agent-card' },
  { name: 'work', hash: conversation('work', 'Fix the header parser', 'The test `header_at_end` fails. Please find out why and fix it.'), wait: '.turn-end' },
  {
    name: 'work-open', hash: conversation('work', 'Fix the header parser', 'The test `header_at_end` fails. Please find out why and fix it.'), wait: '.turn-end',
    prepare: async (tab) => { await tab.page.locator('.transcript').evaluate((view) => { view.dispatchEvent(new WheelEvent('wheel', { deltaY: -10 })); view.scrollTop = 0; }); await tab.openFolds(); await tab.page.locator('.transcript').evaluate((view) => { view.scrollTop = 0; }); },
  },
  {
    name: 'readme', views: [{ name: 'light', width: 1120, height: 800 }, { name: 'dark', width: 1120, height: 800, dark: true }], hash: conversation('readme', 'Fix the header parser', 'The test `header_at_end` fails. Please find out why and fix it.'), wait: '.turn-end',
    prepare: async (tab) => {
      await tab.page.locator('.transcript').evaluate((view) => { view.dispatchEvent(new WheelEvent('wheel', { deltaY: -10 })); view.scrollTop = 0; });
      await tab.page.locator('.fold-line', { hasText: 'Edited' }).click();
      await tab.page.mouse.move(0, 0);
      await tab.page.locator('.transcript').evaluate((view) => { view.scrollTop = 0; });
    },
  },
  { name: 'running', hash: conversation('hang', 'Explain the build', 'Explain the build, step by step.', false), wait: '.pulse' },
  { name: 'planning', hash: conversation('planning', 'Four steps', 'Do the four steps.', false), wait: '.current-plan', prepare: async (tab) => tab.page.locator('.plan-line').click() },
  { name: 'permission', hash: conversation('ask', 'Release build', 'Make a release build from scratch.', false), wait: '.decision' },
  { name: 'permission-edit', hash: conversation('askedit', 'Edit the parser', 'Fix the comparison in header.rs.', false), wait: '.decision .diff-line' },
  { name: 'question', hash: conversation('question', 'Choose a database', 'Set up the storage.', false), wait: '.decision.question' },
  { name: 'failed', hash: conversation('fail', 'A request that fails', 'Try this.'), wait: '.failure' },
  { name: 'huge', hash: conversation('huge', 'Huge outputs', 'Show me the log.'), wait: '.turn-end', prepare: (tab) => tab.openFolds() },
  { name: 'words', hash: conversation('words', `A title ${'without-an-end-'.repeat(8)}`, 'w'.repeat(300)), wait: '.turn-end' },
  { name: 'rtl', hash: conversation('rtl', 'שיחה בעברית', 'למה הבדיקה נכשלת? הקובץ הוא src/header.rs'), wait: '.turn-end' },
  { name: 'usage', hash: async () => '#/usage', wait: '.days' },
  { name: 'operate', hash: async () => '#/operate/overview', wait: '.figure' },
  { name: 'turns', hash: async () => '#/operate/turns', wait: 'table' },
  { name: 'log', hash: async () => '#/operate/log', wait: 'table' },
  { name: 'help', hash: async () => '', wait: '.agent-card', prepare: async (tab) => { await tab.page.locator('h1').click(); await tab.page.keyboard.press('?'); await tab.page.locator('.help').waitFor(); } },
  { name: 'offline', hash: conversation('echo', 'Offline', 'Hello'), wait: '.turn-end', prepare: async (tab) => { await tab.context.setOffline(true); await tab.write('Written while offline'); await tab.page.locator('.send-problem').waitFor(); } },
];

const gateway = new Gateway();
let browser: Browser;

beforeAll(async () => {
  mkdirSync(TARGET, { recursive: true });
  await gateway.start();
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await gateway.remove();
});

for (const shot of SHOTS.filter(({ name }) => ONLY === undefined || ONLY.includes(name))) {
  it(shot.name, async () => {
    const hash = await shot.hash(gateway);
    for (const view of shot.views ?? VIEWS) {
      const tab = await Tab.open(browser, gateway, { ...view, signedOut: shot.signedOut });
      await tab.goto(hash);
      await tab.page.locator(shot.wait).first().waitFor();
      await tab.page.waitForTimeout(400);
      await shot.prepare?.(tab);
      await tab.page.waitForTimeout(300);
      await tab.page.screenshot({ path: path.join(TARGET, `${shot.name}-${view.name}.png`) });
      await tab.context.close();
    }
  });
}
