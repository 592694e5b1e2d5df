import {
  type Authentication,
  type FilledField,
  isSealedField,
  storedNameOf,
} from '../../domain/config/authentication.ts';
import { mask } from '../../domain/config/server-config.ts';
import { fillVariables } from '../../domain/config/server-wide.ts';
import { fillPlaceholders } from '../../domain/http/placeholders.ts';
import { mostHeaderLength } from '../../domain/http/values.ts';
import { plainFailure } from '../../errors.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';

/**
 * The text of a field of a credential, with its placeholders filled. `secret` gives the value of a stored secret.
 * @throws ToolFailure invalid_arguments where it becomes longer than a header may be, and what `secret` throws
 */
export function storedText(
  { config }: HostedServer,
  one: Authentication,
  field: FilledField,
  secret: (name: string) => string,
): string {
  const text = one[field] ?? '';
  if (text === mask && isSealedField(field)) return secret(`${storedNameOf(config, one)}.${field}`);
  const filled = fillPlaceholders(fillVariables(text, config.variables), secret);
  if (filled.length <= mostHeaderLength) return filled;
  const message = `${field} of a credential has more than ${mostHeaderLength} characters when filled; it repeats {{NAME}} too often`;
  throw plainFailure('invalid_arguments', message);
}

/**
 * The value of a secret for the origin that it is about to be sent to. A secret goes only to the origins that the
 * server had when the value was set, so that a later change of a URL cannot expose it.
 * @throws ToolFailure secret_missing; it names the secret, never a value
 */
export function secretFor(server: HostedServer, name: string, origin: string): string {
  const secret = server.secrets.get(name);
  if (!secret) throw plainFailure('secret_missing', `the secret ${name} has no value; set it on the server first`);
  if (!secret.origins.includes(origin)) {
    throw plainFailure(
      'secret_missing',
      `the secret ${name} was set before this tool called ${origin}; set it again to allow that host`,
    );
  }
  return secret.value;
}

/** Most characters that secrets fill in one request. Each use counts at least as so many, because it takes time of its own. */
const mostFilled = 1024 * 1024;
const leastOfUse = 1024;

/** Adds a secret to the characters that are filled already in a request. @throws ToolFailure above the limit */
export function countFilled(filled: number, { length }: string): number {
  const sum = filled + Math.max(length, leastOfUse);
  if (sum <= mostFilled) return sum;
  throw plainFailure(
    'invalid_arguments',
    `the secrets of this tool would fill more than ${mostFilled} characters of its request; its configuration repeats {{NAME}} too often`,
  );
}
