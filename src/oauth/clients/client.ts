import { z } from 'zod';
import { base62 } from '../../domain/credentials/api-key.ts';
import type { OwnHosts } from '../../domain/http/own-hosts.ts';
import type { Random } from '../../domain/ids.ts';
import { onOneLine } from '../../domain/unseen-characters.ts';
import { OAuthError } from '../../errors.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';
import { redirectUriProblem } from './redirect-uri.ts';

/** An OAuth client, registered or described by a document. `host` is set where its id is a web address. */
export type OAuthClient = { id: string; name: string; redirectUris: readonly string[]; host: string | undefined };

const text = (most: number) => z.string().max(most).optional();

/** Client metadata as some clients write them: with null for what they leave out. */
export function withoutNulls(raw: unknown): unknown {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return raw;
  return Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== null));
}

/** The fields of client metadata (RFC 7591, 2) that we use; all others are ignored. */
const metadataSchema = z.object({
  redirect_uris: z.array(z.string()).min(1).max(20),
  client_name: text(20_000),
  client_uri: text(2000),
  scope: text(4000),
  application_type: text(20),
  token_endpoint_auth_method: text(100),
  grant_types: z.array(z.string().max(100)).max(10).optional(),
  response_types: z.array(z.string().max(100)).max(10).optional(),
});

type RegistrationParts = { keyring: Keyring; random: Random; now: () => number; ownHosts: OwnHosts };

const maxNameLength = 80;
/** A longer client id would not fit into an authorization URL. */
const maxIdLength = 6000;
const prefix = 'thc_';

/** A client name, cut to fit on one line of a page. */
export function shortName(name: string | undefined): string {
  const clean = onOneLine(name ?? '');
  return clean === '' ? 'An unnamed client' : [...clean].slice(0, maxNameLength).join('');
}

/**
 * Dynamic client registration (RFC 7591) without storage. The client id holds the registration and its MAC, so a flood
 * of registrations fills no table and every replica knows every client.
 * @throws OAuthError invalid_client_metadata, invalid_redirect_uri
 */
export function registerClient(serverId: string, raw: unknown, parts: RegistrationParts): object {
  const parsed = metadataSchema.safeParse(withoutNulls(raw));
  if (!parsed.success) {
    const field = parsed.error.issues[0]?.path[0];
    const code = field === 'redirect_uris' ? 'invalid_redirect_uri' : 'invalid_client_metadata';
    throw new OAuthError(code, `${String(field ?? 'the body')}: ${parsed.error.issues[0]?.message ?? 'not valid'}`);
  }
  const metadata = parsed.data;
  for (const [index, uri] of metadata.redirect_uris.entries()) {
    const problem = redirectUriProblem(uri, parts.ownHosts);
    if (problem) throw new OAuthError('invalid_redirect_uri', `redirect_uris[${index}] ${problem}`);
  }
  const issuedAt = Math.floor(parts.now() / 1000);
  const name = shortName(metadata.client_name);
  // Two programs that register the same metadata in the same second get different ids.
  const unique = base62(parts.random(9), 12);
  const registration = { s: serverId, n: name, r: metadata.redirect_uris, t: issuedAt, u: unique };
  const clientId = clientIdOf(parts.keyring, registration);
  if (clientId.length > maxIdLength) {
    throw new OAuthError('invalid_redirect_uri', 'the redirect URIs are too long together');
  }
  return {
    client_id: clientId,
    client_id_issued_at: issuedAt,
    client_name: name,
    redirect_uris: metadata.redirect_uris,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    ...(metadata.application_type !== undefined && { application_type: metadata.application_type }),
    ...(metadata.scope !== undefined && { scope: metadata.scope }),
  };
}

type Registration = { s: string; n: string; r: string[]; t: number; u: string };

function clientIdOf(keyring: Keyring, registration: Registration): string {
  const payload = Buffer.from(JSON.stringify(registration)).toString('base64url');
  return `${prefix}${payload}.${keyring.mac(payload, 'client id')}`;
}

/** The client in a client id, or undefined for an id that we did not issue for this server. */
export function readClientId(keyring: Keyring, serverId: string, clientId: string): OAuthClient | undefined {
  const match = /^thc_([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)$/.exec(clientId);
  if (!match) return undefined;
  const [, payload = '', mac = ''] = match;
  if (!keyring.isMac(mac, payload, 'client id')) return undefined;
  const { s, n, r } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Registration;
  return s === serverId ? { id: clientId, name: n, redirectUris: r, host: undefined } : undefined;
}
