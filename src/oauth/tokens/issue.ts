import type { Kysely } from 'kysely';
import type { Grant } from '../../store/logins/grants.ts';
import { insertTokens } from '../../store/logins/tokens.ts';
import type { Tables } from '../../store/schema.ts';
import { hashOf, newSecret, wrapKey } from '../credentials.ts';
import type { ProviderTokens } from '../login-server.ts';
import { type OAuthParts, spans } from '../parts.ts';

/** The answer of a token endpoint (RFC 6749, 5.1). */
export type TokenAnswer = {
  access_token: string;
  token_type: string;
  expires_in?: number;
  refresh_token?: string;
  scope?: string;
};

/** Input for issuing new tokens of ours. */
type Issued = { grant: Grant; generation: number; grantKey: Buffer; tokens: ProviderTokens };

/** Issues new tokens. Without a refresh token of the provider they expire with its access token. */
export async function issue(
  { grant, generation, grantKey, tokens }: Issued,
  parts: OAuthParts,
  db: Kysely<Tables>,
): Promise<TokenAnswer> {
  const now = parts.now();
  const endsWithProvider = tokens.expiresAt !== undefined && tokens.refreshToken === undefined;
  const expiresAt = endsWithProvider ? Math.min(now + spans.access, tokens.expiresAt as number) : now + spans.access;
  const access = `tha_${newSecret(parts.random)}`;
  const refresh = endsWithProvider ? undefined : `thr_${newSecret(parts.random)}`;
  const row = (secret: string, kind: 'access' | 'refresh', expires_at: number) => ({
    hash: hashOf(secret),
    grant_id: grant.id,
    kind,
    generation,
    wrapped_key: wrapKey(grantKey, secret, grant.id),
    expires_at,
  });
  await insertTokens(db, [
    row(access, 'access', expiresAt),
    ...(refresh === undefined ? [] : [row(refresh, 'refresh', now + spans.refresh)]),
  ]);
  return {
    access_token: access,
    token_type: 'Bearer',
    expires_in: Math.max(1, Math.floor((expiresAt - now) / 1000)),
    ...(refresh !== undefined && { refresh_token: refresh }),
    ...scopeOf(grant, tokens),
  };
}

/**
 * The scopes that the provider granted, or those that it was asked for where it names none (RFC 6749, 5.1). Some providers
 * separate them by commas.
 */
function scopeOf(grant: Grant, tokens: ProviderTokens): { scope?: string } {
  const scope =
    tokens.scope
      ?.split(/[\s,]+/)
      .filter((each) => each !== '')
      .join(' ') ?? grant.scope;
  return scope === '' && grant.scope === '' ? {} : { scope };
}
