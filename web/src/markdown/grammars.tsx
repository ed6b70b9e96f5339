// The grammars of code, and how their result becomes nodes. This is a file of its own in the build.

import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import dockerfile from 'highlight.js/lib/languages/dockerfile';
import go from 'highlight.js/lib/languages/go';
import ini from 'highlight.js/lib/languages/ini';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import markdown from 'highlight.js/lib/languages/markdown';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import { createLowlight } from 'lowlight';
import type { ComponentChildren } from 'preact';

const lowlight = createLowlight({
  bash, c, cpp, css, diff, dockerfile, go, ini, java, javascript, json, markdown, python, rust, sql, typescript, xml, yaml,
});
lowlight.registerAlias({ bash: ['console', 'shell', 'shellsession'], ini: ['toml'], json: ['jsonc', 'ndjson'] });

interface HastNode {
  type: string;
  value?: string;
  children?: HastNode[];
  properties?: { className?: unknown };
}

export function colored(code: string, language: string): ComponentChildren | undefined {
  const name = language.toLowerCase();
  if (!lowlight.registered(name)) return undefined;
  return nodes((lowlight.highlight(name, code) as HastNode).children ?? []);
}

function nodes(children: HastNode[]): ComponentChildren {
  return children.map((node) => {
    if (node.type === 'text') return node.value;
    const names = Array.isArray(node.properties?.className) ? node.properties.className.join(' ') : '';
    return <span class={names}>{nodes(node.children ?? [])}</span>;
  });
}
