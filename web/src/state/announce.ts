// Announcements for screen readers: a few words for each change, not the text of an answer.

import { signal } from '@preact/signals';

export const announcement = signal('');

export function announce(text: string): void {
  // The same words twice are two announcements.
  announcement.value = announcement.value === text ? `${text}\u00a0` : text;
}
