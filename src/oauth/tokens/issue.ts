import type { Kysely } from 'kysely';
import type { Grant } from '../../store/logins/grants.ts';
import { insertTokens } from '../../store/logins/tokens.ts';
import type { Tables } from '../../store/schema.ts';
import { hashOf, newSecret, wrapKey } from '../credentials.ts';
import type { ProviderTokens } from '../login-server.ts';
import { offlineScope } from '../metadata.ts';
import { type OAuthParts, spans, type TokenAnswer } from '../parts.ts';

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
 * Fewer scopes than were asked for, where the provider names those (RFC 6749, 5.1); otherwise what was asked for. Providers
 * may call a scope by another name in their answer, and clients end a login with scopes that they do not know. Offline
 * access is left out: it is not advertised, so no client asks for it.
 */
function scopeOf(grant: Grant, tokens: ProviderTokens): { scope?: string } {
  const asked = shown(grant.scope.split(' '));
  const text = tokens.scope?.trim() ?? '';
  // Some providers separate scopes by commas, which a scope itself may contain.
  const granted = shown(text.split(/\s/.test(text) ? /\s+/ : ','));
  const isNarrower = granted.length > 0 && granted.every((scope) => asked.includes(scope));
  const scope = (isNarrower ? granted : asked).join(' ');
  return scope === '' ? {} : { scope };
}

function shown(scopes: readonly string[]): string[] {
  return scopes.filter((scope) => scope !== '' && scope !== offlineScope);
}
