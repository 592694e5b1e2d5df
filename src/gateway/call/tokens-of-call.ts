import { type Authentication, sealedName } from '../../domain/config/authentication.ts';
import { mask } from '../../domain/config/server-config.ts';
import { fillVariables } from '../../domain/config/server-wide.ts';
import { holdsApiKey } from '../../domain/credentials/own-credentials.ts';
import { fillPlaceholders } from '../../domain/http/placeholders.ts';
import type { Tokens } from '../../domain/request/sent-credentials.ts';
import { plainFailure } from '../../errors.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';
import type { Call } from './call.ts';
import { ownKeyFailure } from './refuse-own-key.ts';

/** What fills the credentials of a call. `sent` collects what decides which connections may carry the request. */
type Sources = { token: string | undefined; secret: (name: string) => string; sent: string[] };

const noTokens: Tokens = [];

/** The credential of each entry of `authentication`. @throws ToolFailure secret_missing */
export function tokensOf(call: Call, sources: Sources): Tokens {
  const { credentials } = call.tool.request;
  if (credentials.length === 0) return noTokens;
  return credentials.map((one) => {
    const token = tokenOf(call, one, sources);
    if (token !== undefined) sources.sent.push(token);
    return token;
  });
}

function tokenOf({ server, sensitive }: Call, one: Authentication, { token, secret }: Sources): string | undefined {
  if (one.token !== undefined) {
    const stored = storedText(server, one, 'token', secret);
    sensitive.push(stored);
    return stored;
  }
  if (one.user === undefined) return token;
  const user = storedText(server, one, 'user', secret);
  const password = storedText(server, one, 'password', secret);
  const pair = basicPair(user, password);
  sensitive.push(password, pair);
  return pair;
}

/** The text of a field of a credential, with its placeholders filled. */
function storedText(
  server: HostedServer,
  one: Authentication,
  field: 'token' | 'user' | 'password',
  secret: (name: string) => string,
): string {
  const { authentication, variables } = server.config;
  const text = one[field] ?? '';
  if (text === mask && field !== 'user') return secret(sealedName(authentication, one, field));
  return fillPlaceholders(fillVariables(text, variables), secret);
}

/** The token of Basic (RFC 7617). @throws ToolFailure invalid_arguments */
function basicPair(user: string, password: string): string {
  if (user.includes(':')) {
    throw plainFailure('invalid_arguments', 'the user name of authentication holds a colon, which Basic cannot send');
  }
  const pair = `${user}:${password}`;
  if (holdsApiKey(pair)) throw ownKeyFailure();
  return Buffer.from(pair).toString('base64');
}
