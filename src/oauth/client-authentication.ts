import { OAuthError } from '../errors.ts';
import { hasGrantOfClient } from '../store/logins/grants.ts';
import { findClient, isClientSecret, isDocumentUrl } from './clients.ts';
import type { LoginServer, RequestParts } from './parts.ts';

/** A request of a client to the token or revocation endpoint: its form and its `Authorization` header. */
export type ClientRequest = { form: URLSearchParams; authorization?: string | undefined };

/**
 * The id of the client that sent a request, which proves that it is the client where it registered with a secret. A client
 * with a metadata document that has a login here is known: its document was checked at the login, and need not be reachable
 * for every refresh.
 * @throws OAuthError invalid_request, invalid_client
 */
export async function authenticateClient(
  server: LoginServer,
  request: ClientRequest,
  parts: RequestParts,
): Promise<string> {
  const { clientId, secret } = clientCredentials(request);
  if (isDocumentUrl(clientId) && (await hasGrantOfClient(parts.db, server.id, clientId))) return clientId;
  const { isConfidential } = await findClient(server, clientId, parts);
  if (!isConfidential || isClientSecret(parts.keyring, clientId, secret)) return clientId;
  throw new OAuthError(
    'invalid_client',
    secret === ''
      ? 'client_secret is missing; this client registered with one, so send it in the form or with HTTP Basic'
      : 'client_secret is wrong; send the one from the registration of this client',
  );
}

/** Empty where the client has none. */
type ClientCredentials = { clientId: string; secret: string };

/** Reads the client's credentials from HTTP Basic or from the form; either will do (RFC 6749, 2.3.1). */
function clientCredentials({ form, authorization }: ClientRequest): ClientCredentials {
  const inForm = { clientId: form.get('client_id') ?? '', secret: form.get('client_secret') ?? '' };
  if (authorization === undefined || !usesBasic(authorization)) return inForm;
  const pair = Buffer.from(authorization.slice(basicLength), 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  if (colon < 1)
    throw new OAuthError('invalid_client', 'the Authorization header holds no client id; send "Basic" and id:secret');
  const inHeader = { clientId: formDecoded(pair.slice(0, colon)), secret: formDecoded(pair.slice(colon + 1)) };
  const isOtherClient = inForm.clientId !== '' && inForm.clientId !== inHeader.clientId;
  if (isOtherClient || inForm.secret !== '')
    throw new OAuthError(
      'invalid_request',
      'the client authenticates in the form and in the Authorization header; use one of them',
    );
  return inHeader;
}

const basicLength = 'Basic '.length;

export function usesBasic(authorization: string | undefined): boolean {
  return /^Basic(?: |$)/i.test(authorization ?? '');
}

/** Decodes a value that a client may have form-encoded before Base64. */
function formDecoded(text: string): string {
  return new URLSearchParams(`x=${text}`).get('x') ?? '';
}
