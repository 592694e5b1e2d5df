import { createWebClient } from '../../doctor/web.ts';
import { AppError } from '../../errors.ts';
import { apiPath } from '../../routes.ts';
import { programName } from '../../version.ts';
import { askTokens, LoginEnded } from '../login/token-endpoint.ts';
import { changeCredential } from './credentials.ts';

const answerMs = 30_000;

/**
 * A newer access token than the refused one, from another process that renewed it meanwhile or from the service.
 * @throws AppError unauthenticated when a person has to log in again, unavailable when the service does not answer
 */
export function renewLogin(folder: string, profile: string, refused: string): Promise<string> {
  return changeCredential(folder, profile, async (before, save) => {
    if (!before || 'api_key' in before) throw ended(profile);
    if (before.access_token !== refused) return before.access_token;
    if (before.refresh_token === undefined) throw ended(profile);
    const tokens = await askTokens(createWebClient(fetch, answerMs), before.token_endpoint, {
      grant_type: 'refresh_token',
      refresh_token: before.refresh_token,
      client_id: before.client_id,
      resource: before.url + apiPath,
    }).catch((error: unknown) => {
      throw error instanceof LoginEnded ? ended(profile) : error;
    });
    const { accessToken, refreshToken = before.refresh_token, scope = before.scope } = tokens;
    save({ ...before, access_token: accessToken, refresh_token: refreshToken, scope });
    return accessToken;
  });
}

function ended(profile: string): AppError {
  return new AppError(
    'unauthenticated',
    `the login of the profile "${profile}" has ended; log in again with: ${programName} login --profile ${profile}`,
  );
}
