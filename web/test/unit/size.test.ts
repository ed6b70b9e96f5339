import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

import { expect, it } from 'vitest';

const DIST = path.resolve(import.meta.dirname, '../../../crates/teamster-gateway/src/web/dist');

/** Returns files with those that they load at once, by their paths. */
function withImports(files: string[]): string[] {
  const found = new Set<string>();
  const add = (file: string) => {
    if (found.has(file)) return;
    found.add(file);
    if (!file.endsWith('.js')) return;
    const text = readFileSync(path.join(DIST, file), 'utf8');
    for (const [, name] of text.matchAll(/(?:from|import)\s*"\.\/([a-zA-Z]+\.js)"/g)) add(`assets/${name}`);
  };
  files.forEach(add);
  return [...found];
}

function compressed(files: string[]): number {
  return files.reduce((sum, file) => sum + gzipSync(readFileSync(path.join(DIST, file)), { level: 9 }).length, 0);
}

const html = readFileSync(path.join(DIST, 'index.html'), 'utf8');
const first = ['index.html', ...[...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map((match) => match[1] as string)];

it('the first load has at most 60 KB, and at most 80 KB with an open conversation', () => {
  expect(first.length).toBeGreaterThan(2);
  expect(compressed(withImports(first))).toBeLessThan(60 << 10);
  expect(compressed(withImports([...first, 'assets/conversation.js']))).toBeLessThan(80 << 10);
});

it('the built page has no script or style in its text, and loads nothing from another place', () => {
  expect(html).not.toMatch(/<script(?![^>]*src=)|<style|style=|\son\w+=|https?:/);
});
