// The wait between two attempts to connect.

const FIRST_MS = 500;
const LONGEST_MS = 15_000;

/** Returns the wait before an attempt, counted from 1. `random` is a number from 0 to 1. */
export function backoff(attempt: number, random: number): number {
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempt - 1, 10));
  return Math.round(full / 2 + (full / 2) * random);
}
