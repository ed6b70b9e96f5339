// A person at the page, for tests in other languages: lines of JSON in, lines of JSON out.

import { createInterface } from 'node:readline';

import { chromium } from 'playwright-core';

const { GATEWAY, TOKEN, CHROMIUM } = process.env;
const LIMIT_MS = 60_000;

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' });
const response = await fetch(`${GATEWAY}/v1/session`, { method: 'POST', headers: { Authorization: `Bearer ${TOKEN}` } });
const [name, value] = response.headers.get('set-cookie').split(';')[0].split('=');
await context.addCookies([{ name, value, url: GATEWAY, httpOnly: true, sameSite: 'Strict' }]);
const page = await context.newPage();
page.setDefaultTimeout(LIMIT_MS);
const problems = [];
page.on('pageerror', (error) => problems.push(error.message));

const actions = {
  async start() {
    await page.goto(GATEWAY);
    await page.locator('#composer').waitFor();
  },
  async enter({ conversation }) {
    await page.goto(`${GATEWAY}/#/c/${conversation}`);
    await page.locator('.conversation').waitFor();
  },
  async write({ text }) {
    const composer = page.locator('#composer');
    await composer.fill(text);
    await composer.press('Enter');
  },
  async press({ label }) {
    await page.getByRole('button', { name: label }).click();
  },
  async sees({ text }) {
    await page.locator('.answer', { hasText: text }).last().waitFor();
  },
  async reload() {
    await page.reload();
    await page.locator('.conversation').waitFor();
  },
  async transcript() {
    // A windowed list measures a row before it shows it.
    await page.waitForFunction(() => [...document.querySelectorAll('.row')].every((row) => getComputedStyle(row).visibility === 'visible'));
    return page.locator('.transcript').innerText();
  },
};

console.log(JSON.stringify('ready'));
for await (const line of createInterface({ input: process.stdin })) {
  const action = JSON.parse(line);
  try {
    const result = await actions[action.do](action);
    if (problems.length > 0) throw new Error(problems.join('; '));
    console.log(JSON.stringify({ result: result ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ problem: error.message }));
  }
}
await browser.close();
