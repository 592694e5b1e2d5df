import { holdsPlainCredential } from '../domain/credentials/own-credentials.ts';
import { OutboundError } from '../errors.ts';

/** A client at a token endpoint. `none` is a public client, which has no secret. */
export type TokenClient = { clientId: string; clientSecret: string; clientAuth: 'basic' | 'body' | 'none' };

/**
 * How a client authenticates at a token endpoint (RFC 6749, 2.3): with the headers that are returned, or with fields that
 * are added to the form.
 * @throws OutboundError own_credential
 */
export function authenticateClient(
  { clientId, clientSecret, clientAuth }: TokenClient,
  form: URLSearchParams,
): string[] {
  if (clientAuth === 'basic') return ['Authorization', basic(clientId, clientSecret)];
  form.set('client_id', clientId);
  if (clientAuth === 'body') form.set('client_secret', clientSecret);
  return [];
}

/** RFC 6749, 2.3.1: id and secret are form-encoded before they are joined. */
function basic(clientId: string, clientSecret: string): string {
  // The search of the finished request does not read Base64.
  if (holdsPlainCredential(`${clientId}:${clientSecret}`)) throw new OutboundError('own_credential', ownInBasic);
  return `Basic ${Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString('base64')}`;
}

const ownInBasic =
  'the client id or the client secret holds an API key or a token of this service, which is never sent to an upstream; store the one that the token endpoint gave';

function formEncoded(text: string): string {
  return new URLSearchParams({ x: text }).toString().slice('x='.length);
}
