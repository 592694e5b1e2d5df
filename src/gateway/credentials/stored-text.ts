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
