import { ApiProblem } from '../../api.ts';
import { returnPath } from './channel.ts';

/** A login under way: the URL for the person, and the values that prove that this page began it. */
export type Attempt = {
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
export async function beginLogin(issuer: string): Promise<Attempt> {
  const redirectUri = location.origin + returnPath;
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
