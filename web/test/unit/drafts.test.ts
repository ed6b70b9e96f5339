import { beforeEach, describe, expect, it } from 'vitest';

import { type DraftStorage, Drafts } from '../../src/state/drafts';

class Memory implements DraftStorage {
  private values = new Map<string, string>();
  isFull = false;
  get length() { return this.values.size; }
  key(index: number) { return [...this.values.keys()][index] ?? null; }
  getItem(key: string) { return this.values.get(key) ?? null; }
  setItem(key: string, value: string) {
    if (this.isFull) throw new DOMException('full', 'QuotaExceededError');
    this.values.set(key, value);
  }
  removeItem(key: string) { this.values.delete(key); }
}

describe('a draft', () => {
  let storage: Memory;
  let number: number;
  const open = () => new Drafts(storage, () => `key${++number}`, () => number);
  beforeEach(() => {
    storage = new Memory();
    number = 0;
  });

  it('survives a reload, with the key of its message', () => {
    const key = open().change('a', { text: 'hello' }).key;
    expect(open().get('a')).toMatchObject({ text: 'hello', key });
    expect(open().get('b').text).toBe('');
  });

  it('keeps its key when it is sent again, and gets another one with another text', () => {
    const drafts = open();
    const first = drafts.change('a', { text: 'one' });
    drafts.keep('a', first);
    expect(open().get('a').key).toBe(first.key);
    expect(drafts.change('a', { text: 'two' }).key).not.toBe(first.key);
  });

  it('is removed when its message is accepted, but not what was typed since then', () => {
    const drafts = open();
    const sent = drafts.change('a', { text: 'one' });
    drafts.change('a', { text: 'two' });
    expect(drafts.clear('a', sent.key)).toBe(false);
    expect(open().get('a').text).toBe('two');
    expect(drafts.clear('a', drafts.get('a').key)).toBe(true);
    expect(open().get('a').text).toBe('');
  });

  it('keeps the conversation that was created for it', () => {
    const drafts = open();
    const { key } = drafts.change('new', { text: 'first' });
    drafts.setConversation('new', 'c1');
    expect(open().get('new')).toMatchObject({ conversationId: 'c1', key });
  });

  it('stays in memory if the storage is full or forbidden', () => {
    const drafts = open();
    storage.isFull = true;
    drafts.change('a', { text: 'long' });
    expect(drafts.get('a').text).toBe('long');
    const without = new Drafts(undefined, () => 'k');
    without.change('a', { text: 'x' });
    expect(without.get('a').text).toBe('x');
  });

  it('that is damaged is ignored', () => {
    storage.setItem('teamster.draft.a', '{"text":1');
    expect(open().get('a').text).toBe('');
  });

  it('is one of 50: the oldest goes first', () => {
    const drafts = open();
    for (let index = 0; index < 60; index += 1) drafts.change(`c${index}`, { text: 'x' });
    expect(storage.length).toBe(50);
    expect(open().get('c0').text).toBe('');
    expect(open().get('c59').text).toBe('x');
  });
});
