// A block of code with its language and a button that copies it.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { CopyButton } from '../view/copy';
import { colored, highlighterNow, loadHighlighter } from './highlight';

export interface CodeBlockProps {
  code: string;
  language: string;
  /** The code still grows: it is one text node, so that a selection survives. */
  isOpen: boolean;
}

export function CodeBlock({ code, language, isOpen }: CodeBlockProps) {
  const children = useColors(code, language, isOpen);
  return (
    <div class="code-block">
      <div class="code-head">
        <span class="code-language">{language === '' ? 'text' : language}</span>
        <CopyButton text={code} label="Copy code" />
      </div>
      <pre tabIndex={0} dir="ltr" aria-label={language === '' ? 'Code' : `Code, ${language}`}>
        {children === undefined ? <GrowingText text={code} /> : <code class="hljs">{children}</code>}
      </pre>
    </div>
  );
}

/** Returns colored code once the block is closed and the grammars are there. */
function useColors(code: string, language: string, isOpen: boolean): ComponentChildren | undefined {
  const [, setLoaded] = useState(highlighterNow() !== undefined);
  const wanted = !isOpen && language !== '';
  useEffect(() => {
    if (wanted && highlighterNow() === undefined) void loadHighlighter().then((module) => setLoaded(module !== undefined));
  }, [wanted]);
  const highlighter = highlighterNow();
  const cache = useRef<{ code: string; language: string; nodes: ComponentChildren | undefined } | undefined>(undefined);
  if (!wanted || highlighter === undefined) return undefined;
  if (cache.current?.code !== code || cache.current.language !== language) {
    cache.current = { code, language, nodes: colored(highlighter, code, language) };
  }
  return cache.current.nodes;
}

/** Text that grows at its end. Its node is extended and never replaced. */
function GrowingText({ text }: { text: string }) {
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    const code = element.current;
    if (code === null) return;
    const node = code.firstChild;
    if (node instanceof Text && text.startsWith(node.data)) {
      if (text.length > node.data.length) node.appendData(text.slice(node.data.length));
    } else {
      code.textContent = text;
    }
  }, [text]);
  return <code ref={element} />;
}
