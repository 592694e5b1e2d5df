import { createHash } from 'node:crypto';
import { base62 } from '../domain/credentials/api-key.ts';
import type { Random } from '../domain/ids.ts';
import type { Grant } from '../store/logins/grants.ts';
import { contexts } from '../store/sealing/sealed-columns.ts';
import { createKeyring, type Keyring } from '../store/sealing/sealing.ts';
import type { ProviderTokens } from './parts.ts';

/** 256 random bits as text. */
export function newSecret(random: Random): string {
  return base62(random(32), 43);
}

/** SHA-256 in hex. Tokens, codes, states and cookies are stored only as this hash. */
export function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** The PKCE challenge of a verifier (RFC 7636, 4.2, S256). */
export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}

/**
 * Wraps the key of a grant so that only the bearer of `secret` can unwrap it. A stolen database therefore reveals no
 * provider token, even with the master key.
 */
export function wrapKey(grantKey: Buffer, secret: string, grantId: string): string {
  return createKeyring([Buffer.from(secret)]).seal(grantKey.toString('base64'), `grant key|${grantId}`);
}

export function unwrapKey(wrapped: string, secret: string, grantId: string): Buffer {
  return Buffer.from(createKeyring([Buffer.from(secret)]).open(wrapped, `grant key|${grantId}`), 'base64');
}

/** Characters of a provider's tokens, by which their number in memory is limited. */
export function charactersOf({ accessToken, refreshToken = '', scope = '' }: ProviderTokens): number {
  return accessToken.length + refreshToken.length + scope.length;
}

type GrantIds = { id: string; workspace_id: string };

/** Encrypts the provider's tokens with the key of their grant, and the result with the master key. */
export function sealTokens(keyring: Keyring, grant: GrantIds, grantKey: Buffer, tokens: ProviderTokens): string {
  const inner = createKeyring([grantKey]).seal(JSON.stringify(tokens), `provider tokens|${grant.id}`);
  return keyring.seal(inner, contexts.grantTokens(grant.workspace_id, grant.id));
}

export function openTokens(keyring: Keyring, grant: Grant, grantKey: Buffer): ProviderTokens {
  const inner = keyring.open(grant.sealed_tokens, contexts.grantTokens(grant.workspace_id, grant.id));
  const text = createKeyring([grantKey]).open(inner, `provider tokens|${grant.id}`);
  const tokens = JSON.parse(text) as Partial<ProviderTokens>;
  return { accessToken: '', refreshToken: undefined, scope: undefined, expiresAt: undefined, ...tokens };
}
