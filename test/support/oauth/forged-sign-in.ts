import assert from 'node:assert/strict';
import { type StartOptions, startToolhost } from '../toolhost/toolhost.ts';
import { type ForgedTokenProvider, type Forgery, startForgedTokenProvider } from './forged-token-provider.ts';

/** Starts a service whose users sign in at a provider of forged ID tokens. */
export async function startForgedSignIn(options: StartOptions = {}) {
  const provider = await startForgedTokenProvider();
  const env = { OIDC_ISSUER: provider.url, OIDC_CLIENT_ID: provider.clientId, OIDC_CLIENT_SECRET: 'of-the-client' };
  const toolhost = await startToolhost({ ...options, env: { ...env, ...options.env } });
  return { provider, toolhost, stop: () => Promise.all([toolhost.stop(), provider.close()]) };
}

/** Changes to the provider's redirect, and to the ID token that its code is exchanged for. */
export type ForgedReturn = { changed?: Record<string, string> | undefined; forgery?: Forgery | undefined };

/** Returns the provider's redirect after a departure to its login page. */
export function getCallbackUrl(
  provider: ForgedTokenProvider,
  { searchParams: sent }: URL,
  { changed, forgery }: ForgedReturn = {},
): URL {
  provider.setIdToken(sent.get('nonce') ?? assert.fail('a sign-in has a nonce'), forgery);
  const url = new URL(sent.get('redirect_uri') ?? '');
  const answer = { code: 'of-the-provider', state: sent.get('state') ?? '', iss: provider.url, ...changed };
  url.search = new URLSearchParams(answer).toString();
  return url;
}
