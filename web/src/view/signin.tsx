// The sign-in: a token is exchanged for a cookie. It lies above the page, so that drafts and the place are kept.

import { useEffect, useRef, useState } from 'preact/hooks';

import { logIn } from '../api/calls';
import { asProblem } from '../api/http';
import { bootProblem, session, signedIn } from '../state/app';
import { Icon } from './icons';

export function SignIn() {
  const field = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState<string | undefined>(bootProblem.value);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => field.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    const token = field.current?.value.trim() ?? '';
    if (token === '' || isBusy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      session.value = await logIn(token);
      signedIn();
    } catch (error) {
      const failure = asProblem(error);
      setProblem(failure.status === 401 ? 'This token is not valid.' : failure.message);
      setBusy(false);
      field.current?.select();
    }
  };
  return (
    <main class="sign-in" aria-labelledby="sign-in-title">
      <form class="sign-in-card" onSubmit={(event) => void submit(event)}>
        <div class="sign-in-mark" aria-hidden="true"><Icon name="terminal" /></div>
        <h1 id="sign-in-title">Sign in to this gateway</h1>
        <p class="muted" id="token-hint">
          Paste a token. <code>teamster serve</code> prints where its first one is stored. The page does not keep it.
        </p>
        {/* Password managers offer to keep a password of a named user. */}
        <input type="text" name="username" autocomplete="username" value="teamster" class="off-screen" tabIndex={-1} readOnly aria-hidden="true" />
        <label for="token">Token</label>
        <input
          id="token" ref={field} type="password" autocomplete="current-password" spellcheck={false} required
          aria-describedby={problem === undefined ? 'token-hint' : 'token-problem'} aria-invalid={problem !== undefined}
          placeholder="tms_…" dir="ltr"
        />
        {problem !== undefined && <p class="field-error" id="token-problem" role="alert"><Icon name="warning" />{problem}</p>}
        <button type="submit" class="button primary" disabled={isBusy}>{isBusy ? 'Signing in…' : 'Sign in'}</button>
      </form>
    </main>
  );
}
