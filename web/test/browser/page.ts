// A browser with the page, signed in. Errors on its console, violations of its policy and requests to other hosts fail a test.

import { existsSync } from 'node:fs';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import { type Browser, type BrowserContext, type Locator, type Page, chromium } from 'playwright-core';
import { expect } from 'vitest';

import { type Gateway, TOKEN } from './gateway';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

/** The time in which something must happen. The machine may be busy. */
export const LIMIT_MS = 20_000;

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export async function launch(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} does not exist: install Debian's package chromium, or set CHROMIUM`);
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

export interface OpenOptions {
  width?: number;
  height?: number;
  dark?: boolean;
  touch?: boolean;
  /** Scroll bars lie above the content, as on a phone. */
  mobile?: boolean;
  signedOut?: boolean;
}

export class Tab {
  /** What went wrong in the page. */
  readonly problems: string[] = [];

  private constructor(readonly page: Page, readonly context: BrowserContext, readonly gateway: Gateway) {
    page.setDefaultTimeout(LIMIT_MS);
    page.on('pageerror', (error) => this.problems.push(`error: ${error.message}`));
    page.on('console', (message) => {
      const text = message.text();
      // A browser reports each failed call, which tests cause on purpose.
      if (message.type() === 'error' && !text.startsWith('Failed to load resource')) this.problems.push(`console: ${text}`);
    });
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(gateway.url) && !url.startsWith('data:') && !url.startsWith('blob:')) this.problems.push(`request: ${url}`);
    });
  }

  static async open(browser: Browser, gateway: Gateway, options: OpenOptions = {}): Promise<Tab> {
    const context = await browser.newContext({
      viewport: { width: options.width ?? 1280, height: options.height ?? 860 },
      colorScheme: options.dark === true ? 'dark' : 'light',
      reducedMotion: 'reduce',
      hasTouch: options.touch,
      isMobile: options.mobile,
      permissions: ['clipboard-read', 'clipboard-write'],
      baseURL: gateway.url,
    });
    if (options.signedOut !== true) {
      // The cookie of a session, as the sign-in sets it.
      const response = await fetch(`${gateway.url}/v1/session`, { method: 'POST', headers: { Authorization: `Bearer ${TOKEN}` } });
      const [name = '', value = ''] = (response.headers.get('set-cookie') ?? '').split(';')[0]?.split('=') ?? [];
      await context.addCookies([{ name, value, url: gateway.url, httpOnly: true, sameSite: 'Strict' }]);
    }
    return new Tab(await context.newPage(), context, gateway);
  }

  /** Opens another tab of the same browser profile. */
  async another(): Promise<Tab> {
    return new Tab(await this.context.newPage(), this.context, this.gateway);
  }

  async goto(hash: string): Promise<void> {
    await this.page.goto(`${this.gateway.url}/${hash}`);
  }

  async conversation(id: string): Promise<void> {
    await this.goto(`#/c/${id}`);
    await this.page.locator('.conversation').waitFor();
  }

  get composer(): Locator {
    return this.page.locator('#composer');
  }

  async write(text: string): Promise<void> {
    await this.composer.fill(text);
    await this.composer.press('Enter');
  }

  /** Waits for a text in the transcript. */
  async sees(text: string | RegExp): Promise<void> {
    await this.page.locator('.transcript').getByText(text).first().waitFor();
  }

  /** Returns the text of the transcript. */
  async transcript(): Promise<string> {
    await this.settled();
    return this.page.locator('.transcript').innerText();
  }

  /** Waits until all rows have their place: a windowed list measures a row before it shows it. */
  async settled(): Promise<void> {
    await this.page.waitForFunction(() => [...document.querySelectorAll('.row')].every((row) => getComputedStyle(row).visibility === 'visible'));
  }

  async count(text: string): Promise<number> {
    return (await this.transcript()).split(text).length - 1;
  }

  /** Opens all rows that have nodes. */
  async openFolds(): Promise<void> {
    await this.page.evaluate(() => {
      for (const line of document.querySelectorAll<HTMLButtonElement>('.fold-line[aria-expanded="false"]')) line.click();
    });
  }

  /** Waits for the end of the running turn. */
  async idle(): Promise<void> {
    await this.page.locator('.turn-state.working, .pulse, .composer .stop').waitFor({ state: 'detached' });
  }

  /** Fails on anything that went wrong, on content beside the page, and on a composer outside of it. */
  async check(): Promise<void> {
    expect(this.problems).toEqual([]);
    const layout = await this.page.evaluate(() => {
      const composer = document.getElementById('composer')?.getBoundingClientRect();
      return {
        sideways: document.documentElement.scrollWidth - innerWidth,
        below: composer === undefined ? 0 : composer.bottom - innerHeight,
        above: composer === undefined ? 1 : composer.top,
      };
    });
    expect(layout.sideways).toBeLessThanOrEqual(0);
    expect(layout.below).toBeLessThanOrEqual(0);
    expect(layout.above).toBeGreaterThan(0);
  }

  /** Returns what axe finds, and what it cannot decide besides contrast over images. */
  async axe(): Promise<string[]> {
    await this.settled();
    await this.page.evaluate(axeSource);
    return this.page.evaluate(async () => {
      const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
      const { axe } = window as unknown as { axe: { run: (root: Document, options: unknown) => Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }> } };
      const { violations } = await axe.run(document, { runOnly: { type: 'tag', values: tags } });
      return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)} (${node.failureSummary.slice(0, 300)})`));
    });
  }

  async close(): Promise<void> {
    await this.page.close();
  }
}

/** Waits until a condition holds. */
export async function until(condition: () => Promise<boolean> | boolean, what: string): Promise<void> {
  const limit = Date.now() + LIMIT_MS;
  while (!(await condition())) {
    if (Date.now() > limit) throw new Error(`timed out: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
