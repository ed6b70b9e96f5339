// The events of a conversation's log. Agents and later gateways may send types and fields that are not listed here.

export interface LogEvent {
  type: string;
  seq: number;
  turnId?: string;
  at: string;
  [field: string]: unknown;
}

/** Returns the text in a field, or an empty one. What an agent sends may have any type. */
export function text(event: LogEvent | Record<string, unknown>, field: string): string {
  const value = event[field];
  return typeof value === 'string' ? value : '';
}

/** Returns the text in a field, if there is one. */
export function optionalText(event: Record<string, unknown>, field: string): string | undefined {
  const value = event[field];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns the number in a field, if there is one. */
export function optionalNumber(event: Record<string, unknown>, field: string): number | undefined {
  const value = event[field];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** Returns the list in a field, or an empty one. */
export function list(event: Record<string, unknown>, field: string): unknown[] {
  const value = event[field];
  return Array.isArray(value) ? value : [];
}

/** Returns the object in a field, or an empty one. */
export function object(event: Record<string, unknown>, field: string): Record<string, unknown> {
  return asObject(event[field]);
}

/** Returns a value if it is an object, else an empty object. */
export function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
