import { describe, expect, it } from 'vitest';

import { Markdown } from '../../src/markdown/render';
import { closeMarks } from '../../src/markdown/tail';

/** Returns the text of nodes, with the names of elements that emphasize. */
function textOf(node: unknown): string {
  if (node === null || node === undefined || typeof node === 'boolean') return '';
  if (Array.isArray(node)) return node.map(textOf).join('');
  if (typeof node !== 'object') return String(node);
  const { type, props } = node as { type: unknown; props: { children?: unknown; value?: number } };
  const inner = textOf(props.children);
  if (type === 'br') return '\n';
  if (type === 'li' && props.value !== undefined) return `${props.value}. ${inner};`;
  return type === 'strong' || type === 'em' || type === 'del' ? `<${type}>${inner}</${type}>` : inner;
}

const shown = (text: string) => textOf(Markdown({ text }));

describe('names in Markdown', () => {
  it.each([
    'Edit __init__.py and __main__.py, 5 * 3 * 2, call __len__ and _private_ here.',
    '"__name__" == \'__main__\' and self.__dict__, __call__(self)',
    'src/__tests__/a_b_c.js and snake_case, trailing_ and _leading',
    'a*b and c*d, a*b*c, 2 ** 3 ** 4',
    '**/*.rs and **/*.py, *.py,*.rs',
    'rm *.py and foo/*',
    'f(*args, **kwargs), COUNT(*), SUM(*)',
    '~/x~y and ~/a~, HEAD~1..HEAD~2',
    'C:\\new\\_private\\.git and \\\\server\\share',
    '\\d+\\.\\d+ and find . -name \\*.rs \\( -type f \\)',
    'a[i](j) and handlers[name](event)',
    '$x_1$ and Vec<T>',
  ])('are shown as they are written: %s', (text) => {
    expect(shown(text)).toBe(text);
  });

  it.each([
    ['**bold** and *emphasis*', '<strong>bold</strong> and <em>emphasis</em>'],
    ['**Note:** text **end**.', '<strong>Note:</strong> text <strong>end</strong>.'],
    ['**__init__** and _several words_', '<strong>__init__</strong> and <em>_several words_</em>'],
    ['这是**重要**的', '这是<strong>重要</strong>的'],
    ['~~gone~~ snake\\_case 5 \\* 3 &amp;lt;', '<del>gone</del> snake_case 5 * 3 &lt;'],
  ])('do not hide an emphasis: %s', (text, expected) => {
    expect(shown(text)).toBe(expected);
  });

  it('has the numbers of a list as they are written', () => {
    expect(shown('1986. A year\n1990. Another')).toBe('1986. A year;1990. Another;');
    expect(shown('1. one\n1. two')).toBe('onetwo');
  });

  it('are not completed while the text grows', () => {
    expect(closeMarks('call __init')).toBe('call __init');
  });
});
