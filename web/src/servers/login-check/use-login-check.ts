import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { ApiProblem, api } from '../../api.ts';
import { basePath } from '../../base-path.ts';
import { readAgain } from '../../query-client.ts';
import { queryKeys } from '../../query-keys.ts';
import { messageOf } from '../../ui/states/problem-alert.tsx';
import { type LoginMessage, openChannel, returnPath } from './channel.ts';

export type GivenLogin = { scopes: string[]; missing_scopes: string[]; expires_in_s?: number; renewable: boolean };

export type LoginCheck =
  | { step: 'idle' | 'starting' | 'finishing' }
  | { step: 'waiting'; url: string; isBlocked: boolean }
  | { step: 'good'; given: GivenLogin }
  | { step: 'bad'; error: string; description: string };

type Answer = Extract<LoginMessage, { kind: 'answer' }>;

/** A real login at a server's provider, with this page as its client. The tokens that it gave are revoked at once. */
export function useLoginCheck(slug: string, issuer: string) {
  const [check, setCheck] = useState<LoginCheck>({ step: 'idle' });
  const attempt = useRef<Attempt>(undefined);
  const channel = useRef<BroadcastChannel>(undefined);
  const client = useQueryClient();

  const end = (next: LoginCheck) => {
    if (attempt.current) {
      const message: LoginMessage = { kind: 'finished', state: attempt.current.state, isGood: next.step === 'good' };
      channel.current?.postMessage(message);
    }
    attempt.current = undefined;
    setCheck(next);
    void readAgain(client, { queryKey: queryKeys.grants(slug) });
  };

  const finish = async (answer: Answer, begun: Attempt) => {
    channel.current?.postMessage({ kind: 'taken', state: answer.state } satisfies LoginMessage);
    setCheck({ step: 'finishing' });
    const outcome = await outcomeOf(slug, answer, begun);
    if (attempt.current === begun) end(outcome);
  };

  const taken = useRef<string>(undefined);
  const hear = useRef<(message: LoginMessage) => void>(undefined);
  hear.current = (message) => {
    const begun = attempt.current;
    if (message.kind !== 'answer' || message.state !== begun?.state || taken.current === message.state) return;
    taken.current = message.state;
    void finish(message, begun);
  };
  useEffect(() => {
    const opened = openChannel();
    opened.onmessage = ({ data }: MessageEvent<LoginMessage>) => hear.current?.(data);
    channel.current = opened;
    return () => opened.close();
  }, []);

  const start = async () => {
    // Opened before anything is awaited, or the browser blocks it as a pop-up.
    const tab = window.open('about:blank');
    setCheck({ step: 'starting' });
    try {
      attempt.current = await beginLogin(issuer);
      const { url } = attempt.current;
      setCheck({ step: 'waiting', url, isBlocked: tab === null });
      tab?.location.assign(url);
    } catch (error) {
      tab?.close();
      end({ step: 'bad', error: 'registration', description: messageOf(error) });
    }
  };
  const stop = () => end({ step: 'idle' });
  return { check, start, stop };
}

async function outcomeOf(slug: string, answer: Answer, begun: Attempt): Promise<LoginCheck> {
  const { code, issuer, error, description } = answer;
  // RFC 9207, 2.4: an answer of another server is ignored.
  if (issuer !== begun.issuer)
    return { step: 'bad', error: 'issuer', description: 'the answer came from another server than the one asked' };
  if (code === undefined) return { step: 'bad', error: error ?? '', description: description ?? 'the login failed' };
  const { clientId: client_id, verifier: code_verifier, redirectUri: redirect_uri } = begun;
  try {
    const body = { client_id, code, code_verifier, redirect_uri };
    return { step: 'good', given: await api('checkLogin', { slug, ...body }) };
  } catch (failure) {
    return { step: 'bad', error: 'finish', description: messageOf(failure) };
  }
}

/** A login under way: the URL for the person, and the values that prove that this page began it. */
type Attempt = {
  url: string;
  issuer: string;
  state: string;
  verifier: string;
  clientId: string;
  redirectUri: string;
};

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

const secret = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

/** Registers, and makes an authorization request with PKCE, as every client does. @throws ApiProblem */
async function beginLogin(issuer: string): Promise<Attempt> {
  const redirectUri = location.origin + basePath + returnPath;
  const clientId = await register(new URL(issuer).pathname, redirectUri);
  const [state, verifier] = [secret(), secret()];
  const challenge = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier)));
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    state,
    code_challenge: base64url(challenge),
    code_challenge_method: 'S256',
    resource: issuer,
  });
  return { url: `${issuer}/authorize?${query}`, issuer, state, verifier, clientId, redirectUri };
}

async function register(serverPath: string, redirectUri: string): Promise<string> {
  const response = await fetch(`${serverPath}/register`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ client_name: 'Login check of the dashboard', redirect_uris: [redirectUri] }),
  }).catch(() => undefined);
  if (!response) throw new ApiProblem(0, 'The service cannot be reached. Check your connection and try again.');
  const answer = (await response.json().catch(() => ({}))) as { client_id?: string; error_description?: string };
  if (answer.client_id !== undefined) return answer.client_id;
  throw new ApiProblem(response.status, answer.error_description ?? `The server answered ${response.status}.`);
}
