// Calls of the HTTP API, and what they return instead of a result: problems (RFC 9457), or no answer at all.

/** Why a call has failed. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly answeredBy?: string,
    readonly retryAfter?: number,
  ) {
    super(message);
  }

  /** The gateway did not answer: the network, or a gateway that is down. */
  get isUnreachable(): boolean {
    return this.status === 0;
  }

  /** The same call may succeed later. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** How long a call may take. */
const LIMIT_MS = 30_000;

const unauthorizedListeners = new Set<() => void>();

/** Calls a function when the session has ended. */
export function onUnauthorized(listener: () => void): void {
  unauthorizedListeners.add(listener);
}

export function reportUnauthorized(): void {
  for (const listener of unauthorizedListeners) listener();
}

export interface CallOptions {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** A failure with the status 401 is the caller's own affair. */
  isLogin?: boolean;
}

/** Calls the API, and returns the body of the response. */
export async function call<T>(path: string, options: CallOptions = {}): Promise<T> {
  const { method = options.body === undefined ? 'GET' : 'POST', body, isLogin } = options;
  const headers: Record<string, string> = { Accept: 'application/json', ...options.headers };
  if (method !== 'GET') headers['X-Teamster-CSRF'] = '1';
  let content: BodyInit | undefined;
  if (body instanceof Blob) {
    content = body;
    headers['Content-Type'] = 'application/octet-stream';
  } else if (body !== undefined) {
    content = JSON.stringify(body);
    headers['Content-Type'] = 'application/json';
  }
  const limit = AbortSignal.timeout(body instanceof Blob ? LIMIT_MS * 10 : LIMIT_MS);
  const signal = options.signal === undefined ? limit : AbortSignal.any([limit, options.signal]);
  let response: Response;
  try {
    response = await fetch(path, { method, headers, body: content, signal, credentials: 'same-origin', cache: 'no-store' });
  } catch (error) {
    throw unreachable(error);
  }
  if (!response.ok) {
    const problem = await problemOf(response);
    if (problem.status === 401 && isLogin !== true) reportUnauthorized();
    throw problem;
  }
  if (response.status === 204) return undefined as T;
  try {
    return (await response.json()) as T;
  } catch (error) {
    throw unreachable(error);
  }
}

function unreachable(error: unknown): Problem {
  const isTimeout = error instanceof DOMException && error.name === 'TimeoutError';
  const message = isTimeout ? 'The gateway did not answer in time.' : 'The gateway cannot be reached.';
  return new Problem(0, isTimeout ? 'TIMEOUT' : 'UNREACHABLE', message);
}

/** Reads a response with an error status. */
export async function problemOf(response: Response): Promise<Problem> {
  let fields: Record<string, unknown> = {};
  try {
    fields = (await response.json()) as Record<string, unknown>;
  } catch {
    // A proxy may answer in another form.
  }
  const text = (name: string) => (typeof fields[name] === 'string' ? (fields[name] as string) : undefined);
  const seconds = Number(response.headers.get('Retry-After') ?? Number.NaN);
  const message = text('detail') ?? text('title') ?? `The gateway answered with the status ${response.status}.`;
  const retryAfter = Number.isFinite(seconds) ? seconds : undefined;
  return new Problem(response.status, text('code') ?? `HTTP_${response.status}`, message, text('answeredBy'), retryAfter);
}

/** Returns a failure as a problem. */
export function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, 'PAGE', error instanceof Error ? error.message : String(error));
}
