import { createWebClient } from '../../doctor/web.ts';
import { revokeToken } from '../login/token-endpoint.ts';
import type { StoredCredential } from './credentials.ts';

const answerMs = 30_000;

/** Ends a login at its service. An API key stays as it is. @throws AppError when the service did not do it */
export async function endStoredLogin(stored: StoredCredential): Promise<void> {
  if ('api_key' in stored || stored.revocation_endpoint === undefined) return;
  await revokeToken(createWebClient(fetch, answerMs), stored.revocation_endpoint, {
    clientId: stored.client_id,
    token: stored.refresh_token ?? stored.access_token,
  });
}
