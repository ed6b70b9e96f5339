// The keys of the page.

import { useEffect, useRef } from 'preact/hooks';

import { isHelpOpen } from '../state/app';
import { Icon } from './icons';
import { hasSingleKeys, setSingleKeys } from './keys';

const KEYS: { title: string; keys: [string, string][] }[] = [
  {
    title: 'Anywhere',
    keys: [
      ['Ctrl K', 'Search conversations'], ['Ctrl Shift O', 'New conversation'], ['Alt ↑ ↓', 'Other conversation'],
      ['Esc Esc', 'Stop the running turn'],
    ],
  },
  { title: 'In the message field', keys: [['Enter', 'Send or queue'], ['Ctrl Enter', 'Steer the running turn'], ['Shift Enter', 'New line']] },
  {
    title: 'Single keys',
    keys: [['J K', 'Next and previous block'], ['E', 'Edit the message'], ['C', 'Copy the block'], ['/', 'Message field'], ['?', 'This help']],
  },
  { title: 'In a request', keys: [['A', 'Allow once'], ['D', 'Deny']] },
];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={() => { isHelpOpen.value = false; }}>
      <div class="help-head">
        <h2 id="help-title">Keyboard</h2>
        <button type="button" class="icon-button" aria-label="Close" onClick={() => dialog.current?.close()}><Icon name="cross" /></button>
      </div>
      <div class="help-groups">
        {KEYS.map(({ title, keys }) => (
          <section>
            <h3>{title}</h3>
            <dl>
              {keys.map(([key, text]) => (
                <div class="help-key"><dt>{key.split(' ').map((part) => <kbd>{part}</kbd>)}</dt><dd>{text}</dd></div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <label class="help-setting">
        <input type="checkbox" checked={hasSingleKeys.value} onChange={(event) => setSingleKeys(event.currentTarget.checked)} />
        Use single keys
      </label>
    </dialog>
  );
}
