import { expect, it } from 'vitest';

import { parseRoute } from '../../src/state/route';
import { ageText, costText, sizeText, titleFrom, tokenText } from '../../src/view/titles';

it('the title of a conversation is the first line of its first message', () => {
  expect(titleFrom('\n\n# Fix **the** `test`\nplease')).toBe('Fix the test');
  expect(titleFrom('x'.repeat(200))).toHaveLength(80);
  expect(titleFrom('   ')).toBe('');
});

it('numbers are short', () => {
  expect([0, 0.0035, 0.5, 12.345, 1234].map(costText)).toEqual(['$0', '$0.0035', '$0.50', '$12.35', '$1,234']);
  expect([12, 1_500, 150_000, 2_500_000].map(tokenText)).toEqual(['12', '1.5k', '150k', '2.5M']);
  expect([10, 2_048, 3 << 20].map(sizeText)).toEqual(['10 B', '2 KB', '3.0 MB']);
  const now = Date.parse('2026-03-01T12:00:00Z');
  expect(['2026-03-01T11:59:30Z', '2026-03-01T11:15:00Z', '2026-03-01T02:00:00Z', '2026-02-27T12:00:00Z'].map((at) => ageText(at, now))).toEqual(['now', '45 min', '10 h', '2 d']);
});

it('the address names a place, and a damaged one is a new conversation', () => {
  expect(parseRoute('#/c/abc')).toEqual({ name: 'conversation', id: 'abc' });
  expect(parseRoute('#/operate/deliveries?state=failed')).toEqual({ name: 'operate', tab: 'deliveries', filter: { state: 'failed' } });
  expect(parseRoute('#/usage')).toEqual({ name: 'usage' });
  expect(parseRoute('#/c/%E0%A4%A')).toEqual({ name: 'conversation', id: '%E0%A4%A' });
  expect(parseRoute('')).toEqual({ name: 'new' });
});
