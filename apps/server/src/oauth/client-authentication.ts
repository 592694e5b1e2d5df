import { OAuthError } from '@toolhost/errors/errors';
import { hasClientGrant } from '../store/logins/grants.ts';
import { findClient, isClientSecret, isDocumentUrl } from './clients.ts';
import type { LoginServer, RequestDeps } from './oauth-deps.ts';

/** A client's request to the token or revocation endpoint: its form and its `Authorization` header. */
export type TokenEndpointRequest = { form: URLSearchParams; authorization?: string | undefined };

/**
 * Returns the id of the client that sent a request. If the client registered with a secret, the request must prove it.
 * A client with a metadata document and a login here is accepted without fetching the document, which was checked at
 * the login and need not be reachable for every refresh.
 * @throws OAuthError invalid_request, invalid_client
 */
export async function authenticateClient(
  server: LoginServer,
  request: TokenEndpointRequest,
  deps: RequestDeps,
): Promise<string> {
  const { clientId, secret } = readClientCredentials(request);
  if (isDocumentUrl(clientId) && (await hasClientGrant(deps.db, server.id, clientId))) return clientId;
  const { isConfidential } = await findClient(server, clientId, deps);
  if (!isConfidential || isClientSecret(deps.keyring, clientId, secret)) return clientId;
  throw new OAuthError(
    'invalid_client',
    secret === ''
      ? 'client_secret is missing; this client registered with a secret, so send it in the form or with HTTP Basic'
      : "client_secret is wrong; send the secret from this client's registration",
  );
}

/** The credentials of a client. Both fields are empty if the request has none. */
type ClientCredentials = { clientId: string; secret: string };

/** Reads the client's credentials from HTTP Basic or from the form. Both are allowed (RFC 6749, 2.3.1). */
function readClientCredentials({ form, authorization }: TokenEndpointRequest): ClientCredentials {
  const formCredentials = { clientId: form.get('client_id') ?? '', secret: form.get('client_secret') ?? '' };
  if (authorization === undefined || !usesBasic(authorization)) return formCredentials;
  const credentials = Buffer.from(authorization.slice(basicPrefixLength), 'base64').toString('utf8');
  const colon = credentials.indexOf(':');
  if (colon < 1)
    throw new OAuthError(
      'invalid_client',
      'the Authorization header has no client id; send "Basic" and the Base64 of id:secret',
    );
  const headerCredentials = {
    clientId: decodeFormValue(credentials.slice(0, colon)),
    secret: decodeFormValue(credentials.slice(colon + 1)),
  };
  const isOtherClient = formCredentials.clientId !== '' && formCredentials.clientId !== headerCredentials.clientId;
  if (isOtherClient || formCredentials.secret !== '')
    throw new OAuthError(
      'invalid_request',
      'the client authenticates both in the form and in the Authorization header; use only one of them',
    );
  return headerCredentials;
}

const basicPrefixLength = 'Basic '.length;

export function usesBasic(authorization: string | undefined): boolean {
  return /^Basic(?: |$)/i.test(authorization ?? '');
}

/** Decodes a value that the client may have form-encoded before Base64. */
function decodeFormValue(text: string): string {
  return new URLSearchParams(`x=${text}`).get('x') ?? '';
}
