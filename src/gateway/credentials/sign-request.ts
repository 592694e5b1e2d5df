import { hash } from 'node:crypto';
import aws4 from 'aws4';
import type { Authentication } from '../../domain/config/authentication.ts';
import { fillVariables } from '../../domain/config/server-wide.ts';
import { plainFailure } from '../../errors.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';
import { storedText } from './stored-text.ts';

/** The keys and the scope of signatures of AWS (Signature Version 4). */
export type Signing = {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string | undefined;
  region: string;
  service: string;
};

/** A request as it is sent; headers are names and values in turn. */
type Unsigned = {
  method: string;
  origin: string;
  path: string;
  headers: readonly string[];
  body: string | Uint8Array | undefined;
};

/** The keys of a credential, with its placeholders filled. @throws ToolFailure secret_missing */
export function signingOf(server: HostedServer, one: Authentication, secret: (name: string) => string): Signing {
  const filled = (text = '') => fillVariables(text, server.config.variables);
  return {
    accessKeyId: storedText(server, one, 'access_key_id', secret),
    secretAccessKey: storedText(server, one, 'secret_access_key', secret),
    sessionToken: one.session_token === undefined ? undefined : storedText(server, one, 'session_token', secret),
    region: filled(one.region),
    service: filled(one.service),
  };
}

/** Services that want the hash of the body in a header of its own. */
const wantsBodyHash = /^(?:s3|aoss$|vpc-lattice)/;
/** The signer reads no more parameters of a query. */
const mostParameters = 1000;

/**
 * The headers that sign a request, names and values in turn. All headers that it has are signed, so none may be changed
 * afterwards. `at` is in epoch ms.
 * @throws ToolFailure invalid_arguments
 */
export function signatureOf(request: Unsigned, signing: Signing, at: number, isBodySigned = false): string[] {
  if (request.path.split('&').length > mostParameters) {
    const message = `the request has more than ${mostParameters} query parameters, which cannot be signed; send less`;
    throw plainFailure('invalid_arguments', message);
  }
  const { accessKeyId, secretAccessKey, sessionToken, region, service } = signing;
  const datetime = new Date(at).toISOString().replaceAll(/[:-]|\.\d{3}/g, '');
  const added: Record<string, string> = {
    'X-Amz-Date': datetime,
    ...(sessionToken !== undefined && { 'X-Amz-Security-Token': sessionToken }),
    ...((isBodySigned || wantsBodyHash.test(service)) && { 'X-Amz-Content-Sha256': bodyHash(request.body) }),
  };
  const signer = new aws4.RequestSigner(
    {
      method: request.method,
      host: new URL(request.origin).host,
      path: request.path,
      headers: { Host: new URL(request.origin).host, ...joined(request.headers), ...added },
      ...(request.body !== undefined && { body: asText(request.body) }),
      region,
      service,
      doNotModifyHeaders: true,
    },
    { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) },
  );
  signer.datetime = datetime;
  const { Authorization: authorization } = signer.sign().headers as Record<string, string>;
  return [...Object.entries(added).flat(), 'Authorization', String(authorization)];
}

/** The signer takes a string or a Buffer. */
function asText(body: string | Uint8Array): string | Buffer {
  return typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

/** Lines of one name are signed as one, joined by commas. */
function joined(headers: readonly string[]): Record<string, string> {
  const all = new Map<string, string>();
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase();
    const value = headers[i + 1] as string;
    const known = all.get(name);
    all.set(name, known === undefined ? value : `${known},${value}`);
  }
  return Object.fromEntries(all);
}

function bodyHash(body: string | Uint8Array = ''): string {
  return hash('sha256', body, 'hex');
}

const unsigned = /[^0-9A-Za-z;,/?:@&=+$\-_.!~*'()#%]/g;

/**
 * A path and query in which every character that URLs may hold in more than one form is percent-encoded: the receiver
 * then signs the same text.
 */
export function signablePath(path: string): string {
  return path.replaceAll(unsigned, (character) => encodeURIComponent(character));
}
