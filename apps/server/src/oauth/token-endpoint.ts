import { containsPlainCredential } from '@toolhost/credentials/own-credentials';
import { OutboundError } from '@toolhost/errors/errors';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import type { OAuth, TokenFieldNames } from '@toolhost/tool-config/oauth';

/** A client of a token endpoint. `none` is a public client, which has no secret. */
type TokenClient = { clientId: string; clientSecret: string; clientAuth: 'basic' | 'body' | 'none' };

type TokenEndpointRequest = {
  workspaceId: string;
  tokenUrl: string;
  client: TokenClient;
  form: URLSearchParams;
  /** Encoding of the body. Defaults to `form`. */
  encoding?: OAuth['token_request'];
  /** Names of fields that the endpoint calls differently. */
  fieldNames?: TokenFieldNames | undefined;
  timeoutMs: number;
};

const maxResponseBytes = 256 * 1024;
const mediaTypes = { form: 'application/x-www-form-urlencoded', json: 'application/json' };

/** Sends one POST without a retry, because a code can be used only once. @throws OutboundError */
export async function callTokenEndpoint(
  { workspaceId, tokenUrl, client, form, encoding = 'form', fieldNames = {}, timeoutMs }: TokenEndpointRequest,
  { http, userAgent }: { http: HttpClient; userAgent: string },
): Promise<UpstreamResponse> {
  const url = new URL(tokenUrl);
  const credentials = authenticateClient(client, form);
  const fields = [...form].map(([name, value]) => [fieldNames[name as keyof TokenFieldNames] ?? name, value]);
  return http.send({
    workspaceId,
    origin: url.origin,
    // Undefined, so that the request gets its own connection. Tokens must not arrive on one that another caller used.
    credentialHash: undefined,
    path: url.pathname + url.search,
    method: 'POST',
    headers: [
      ...['Content-Type', mediaTypes[encoding], 'Accept', 'application/json'],
      ...credentials,
      ...['User-Agent', userAgent],
    ],
    body: encoding === 'json' ? JSON.stringify(Object.fromEntries(fields)) : new URLSearchParams(fields).toString(),
    timeoutMs,
    limitBytes: maxResponseBytes,
  });
}

type UserinfoRequest = { workspaceId: string; url: string; authorization: string; timeoutMs: number };

/** Reads a userinfo endpoint, with the limits of a token endpoint. @throws OutboundError */
export async function callUserinfo(
  { workspaceId, url: text, authorization, timeoutMs }: UserinfoRequest,
  { http, userAgent }: { http: HttpClient; userAgent: string },
): Promise<UpstreamResponse> {
  const url = new URL(text);
  return http.send({
    workspaceId,
    origin: url.origin,
    credentialHash: undefined,
    path: url.pathname + url.search,
    method: 'GET',
    headers: [...['Accept', 'application/json', 'Authorization', authorization], ...['User-Agent', userAgent]],
    body: undefined,
    timeoutMs,
    limitBytes: maxResponseBytes,
  });
}

/**
 * Authenticates a client at a token endpoint (RFC 6749, 2.3), with the returned headers or with fields that are added
 * to the form.
 * @throws OutboundError own_credential
 */
function authenticateClient({ clientId, clientSecret, clientAuth }: TokenClient, form: URLSearchParams): string[] {
  if (clientAuth === 'basic') return ['Authorization', formatBasic(clientId, clientSecret)];
  form.set('client_id', clientId);
  if (clientAuth === 'body') form.set('client_secret', clientSecret);
  return [];
}

/** Formats Basic credentials. The id and the secret are form-encoded before they are joined (RFC 6749, 2.3.1). */
function formatBasic(clientId: string, clientSecret: string): string {
  // The search of the rendered request does not decode base64.
  if (containsPlainCredential(`${clientId}:${clientSecret}`))
    throw new OutboundError('own_credential', ownCredentialMessage);
  return `Basic ${Buffer.from(`${encodeFormValue(clientId)}:${encodeFormValue(clientSecret)}`).toString('base64')}`;
}

const ownCredentialMessage =
  'the client id or client secret contains an API key or token of this service, which is never sent to an upstream; store the value that the provider issued';

function encodeFormValue(text: string): string {
  return new URLSearchParams({ x: text }).toString().slice('x='.length);
}
