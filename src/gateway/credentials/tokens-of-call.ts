import type { Authentication } from '../../domain/config/authentication.ts';
import { holdsPlainCredential } from '../../domain/credentials/own-credentials.ts';
import type { Tokens } from '../../domain/request/build-request.ts';
import { plainFailure } from '../../errors.ts';
import type { CredentialUse } from './own-tokens.ts';
import { signingOf } from './sign-request.ts';
import { storedText } from './stored-text.ts';

/** What fills the credentials of a call. `sent` collects what decides which connections may carry the request. */
type Sources = { token: string | undefined; secret: (name: string) => string; sent: string[] };

const noTokens: Tokens = [];

/** The credential of each entry of `authentication`. @throws ToolFailure secret_missing */
export function tokensOf(call: CredentialUse, sources: Sources): Tokens {
  const { credentials } = call.tool.request;
  if (credentials.length === 0) return noTokens;
  const tokens: (string | undefined)[] = [];
  for (const one of credentials) {
    const token = tokenOf(call, one, sources);
    if (token !== undefined) sources.sent.push(token);
    tokens.push(token);
  }
  return tokens;
}

function tokenOf(call: CredentialUse, one: Authentication, { token, secret }: Sources): string | undefined {
  const { server, sensitive } = call;
  if (one.type === 'AwsSigV4') return keysOf(call, one, secret);
  if (one.type === 'ClientCredentials') {
    const own = call.ownTokens?.get(one);
    if (own !== undefined) sensitive.push(own);
    return own;
  }
  if (one.token !== undefined) {
    const stored = storedText(server, one, 'token', secret);
    sensitive.push(stored);
    return stored;
  }
  if (one.user === undefined) return token;
  const user = storedText(server, one, 'user', secret);
  const password = storedText(server, one, 'password', secret);
  const pair = basicPair(user, password);
  sensitive.push(...[password, pair].filter((text) => text !== ''));
  return pair;
}

/** Keeps the keys that sign the request; together they identify its connections, as a token does. */
function keysOf(call: CredentialUse, one: Authentication, secret: (name: string) => string): string {
  const signing = signingOf(call.server, one, secret);
  const keys = [signing.accessKeyId, signing.secretAccessKey, signing.sessionToken ?? ''].filter((key) => key !== '');
  call.sensitive.push(...keys);
  call.signing = signing;
  return keys.join(' ');
}

const ownInBasic =
  'the user name or password of authentication holds an API key or a token of this service, which is never sent to an upstream; store a credential of the upstream itself';

/** The token of Basic (RFC 7617). @throws ToolFailure invalid_arguments */
function basicPair(user: string, password: string): string {
  if (user.includes(':')) {
    throw plainFailure('invalid_arguments', 'the user name of authentication holds a colon, which Basic cannot send');
  }
  const pair = `${user}:${password}`;
  // The search of the finished request does not read Base64.
  if (holdsPlainCredential(pair)) throw plainFailure('invalid_arguments', ownInBasic);
  return Buffer.from(pair).toString('base64');
}
