// The button that opens the list on a narrow screen.

import { conversations, isSidebarOpen } from '../state/app';
import { Icon } from './icons';

export function MenuButton() {
  const count = conversations.waitingCount.value;
  return (
    <button
      type="button" class="icon-button only-narrow menu-button" onClick={() => { isSidebarOpen.value = true; }}
      aria-label={count > 0 ? `Conversations, ${count} need you` : 'Conversations'}
    >
      <Icon name="menu" />
      {count > 0 && <span class="dot" aria-hidden="true" />}
    </button>
  );
}
