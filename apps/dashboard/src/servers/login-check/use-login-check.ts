import { useQueryClient } from '@tanstack/react-query';
import type { Output } from '@toolhost/server/operations';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { ApiProblem, api } from '../../api.ts';
import { basePath, loginCheckPath } from '../../base-path.ts';
import { refetchQueries } from '../../query-client.ts';
import { queryKeys } from '../../query-keys.ts';
import { getErrorMessage } from '../../ui/states/problem-alert.tsx';

type ProviderResponse = {
  kind: 'answer';
  state: string;
  code?: string;
  issuer?: string;
  error?: string;
  description?: string;
};

/** Messages between the page that the login returns to and the page that started it. */
export type LoginMessage =
  | ProviderResponse
  | { kind: 'taken'; state: string }
  | { kind: 'finished'; state: string; isGood: boolean };

/** Opens a channel to other pages of this origin. */
export function openChannel(onMessage: (message: LoginMessage) => void) {
  const channel = new BroadcastChannel('toolhost-login-check');
  channel.onmessage = ({ data }: MessageEvent<LoginMessage>) => onMessage(data);
  return { send: (message: LoginMessage) => channel.postMessage(message), close: () => channel.close() };
}

export type LoginResult = Output<'checkLogin'>;

export type LoginCheck =
  | { step: 'idle' | 'starting' | 'finishing' }
  | { step: 'waiting'; url: string; isBlocked: boolean }
  | { step: 'good'; result: LoginResult }
  | { step: 'bad'; error: string; description: string };

/**
 * Runs a real login at a server's provider, with this page as the client. The issued tokens are revoked immediately.
 */
export function useLoginCheck(slug: string, issuer: string) {
  const [check, setCheck] = useState<LoginCheck>({ step: 'idle' });
  const attempt = useRef<Attempt>(undefined);
  const channel = useRef<ReturnType<typeof openChannel>>(undefined);
  const client = useQueryClient();

  const finish = (next: LoginCheck) => {
    const { state } = attempt.current ?? {};
    if (state !== undefined) channel.current?.send({ kind: 'finished', state, isGood: next.step === 'good' });
    attempt.current = undefined;
    setCheck(next);
    void refetchQueries(client, { queryKey: queryKeys.grants(slug) });
  };

  const handleMessage = useEffectEvent(async (message: LoginMessage) => {
    const currentAttempt = attempt.current;
    if (message.kind !== 'answer' || message.state !== currentAttempt?.state || currentAttempt.hasResponse) return;
    currentAttempt.hasResponse = true;
    channel.current?.send({ kind: 'taken', state: message.state });
    setCheck({ step: 'finishing' });
    const outcome = await finishLogin(slug, message, currentAttempt);
    if (attempt.current === currentAttempt) finish(outcome);
  });
  useEffect(() => {
    const opened = openChannel((message) => void handleMessage(message));
    channel.current = opened;
    return opened.close;
  }, []);

  const start = async () => {
    // The browser would block a tab that is opened after the first await.
    const tab = window.open('about:blank');
    setCheck({ step: 'starting' });
    try {
      attempt.current = await startLogin(issuer);
      const { url } = attempt.current;
      setCheck({ step: 'waiting', url, isBlocked: tab === null });
      tab?.location.assign(url);
    } catch (error) {
      tab?.close();
      finish({ step: 'bad', error: 'registration', description: getErrorMessage(error) });
    }
  };
  return { check, start, stop: () => finish({ step: 'idle' }) };
}

async function finishLogin(
  slug: string,
  { code, issuer, error, description }: ProviderResponse,
  attempt: Attempt,
): Promise<LoginCheck> {
  // RFC 9207, 2.4: a response from another server is ignored.
  if (issuer !== attempt.issuer)
    return { step: 'bad', error: 'issuer', description: 'the response came from a different authorization server' };
  if (code === undefined) return { step: 'bad', error: error ?? '', description: description ?? 'the login failed' };
  try {
    return { step: 'good', result: await api('checkLogin', { slug, code, ...attempt.proof }) };
  } catch (failure) {
    return { step: 'bad', error: 'finish', description: getErrorMessage(failure) };
  }
}

/** Login in progress: the authorization URL, and the values that prove that this page started it. */
type Attempt = {
  url: string;
  issuer: string;
  state: string;
  proof: { client_id: string; code_verifier: string; redirect_uri: string };
  hasResponse?: boolean;
};

function toBase64Url(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

const createRandomToken = () => toBase64Url(crypto.getRandomValues(new Uint8Array(32)));

/** Registers a client and creates an authorization request with PKCE. @throws ApiProblem */
async function startLogin(issuer: string): Promise<Attempt> {
  const redirect_uri = location.origin + basePath + loginCheckPath;
  const client_id = await register(new URL(issuer).pathname, redirect_uri);
  const [state, code_verifier] = [createRandomToken(), createRandomToken()];
  const challenge = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(code_verifier));
  const query = new URLSearchParams({
    response_type: 'code',
    client_id,
    redirect_uri,
    state,
    code_challenge: toBase64Url(new Uint8Array(challenge)),
    code_challenge_method: 'S256',
    resource: issuer,
  });
  return { url: `${issuer}/authorize?${query}`, issuer, state, proof: { client_id, code_verifier, redirect_uri } };
}

async function register(serverPath: string, redirectUri: string): Promise<string> {
  const response = await fetch(`${serverPath}/register`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ client_name: 'Dashboard login check', redirect_uris: [redirectUri] }),
  }).catch(() => undefined);
  if (!response) throw new ApiProblem(0, 'The service is unreachable. Check your connection and try again.');
  const registration = (await response.json().catch(() => ({}))) as { client_id?: string; error_description?: string };
  if (registration.client_id !== undefined) return registration.client_id;
  throw new ApiProblem(response.status, registration.error_description ?? `The server returned ${response.status}.`);
}
