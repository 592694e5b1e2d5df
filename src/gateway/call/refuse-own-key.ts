import { holdsApiKey } from '../../domain/credentials/own-credentials.ts';
import type { UpstreamRequest } from '../../domain/request/request-template.ts';
import { ToolFailure } from '../../errors.ts';

/**
 * Refuses a request with one of our API keys in it. Credentials are checked where they are presented; this check covers
 * the arguments, and secrets stored before that rule.
 * @throws ToolFailure invalid_arguments
 */
export function refuseOwnKey({ path, headers, body }: UpstreamRequest): void {
  const texts = typeof body === 'object' ? body.fields.flat() : [body ?? ''];
  if (holdsApiKey(path) || headers.some(holdsApiKey) || texts.some(holdsApiKey)) throw ownKeyFailure();
}

export function ownKeyFailure(): ToolFailure {
  return new ToolFailure(
    'invalid_arguments',
    'the request would hold an API key of this service, which is never sent to an upstream; leave it out of the arguments',
  );
}
