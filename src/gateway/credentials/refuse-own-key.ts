import { holdsApiKey } from '../../domain/credentials/own-credentials.ts';
import { formParts, type UpstreamRequest } from '../../domain/request/upstream-request.ts';
import { plainFailure, type ToolFailure } from '../../errors.ts';

/**
 * Refuses a request with one of our API keys in it. Credentials are checked where they are presented; this check covers
 * the arguments, and secrets stored before that rule. `searched` are bytes that were searched before, in pieces.
 * @throws ToolFailure invalid_arguments
 */
export function refuseOwnKey({ path, headers, body }: UpstreamRequest, searched?: ReadonlySet<unknown>): void {
  if (holdsApiKey(path) || headers.some(holdsApiKey) || (body !== undefined && bodyHoldsKey(body, searched)))
    throw ownKeyFailure();
}

function bodyHoldsKey(body: NonNullable<UpstreamRequest['body']>, searched?: ReadonlySet<unknown>): boolean {
  const parts = formParts(body);
  const texts = parts ? parts.flatMap(([name, value, of]) => [name, value, of?.fileName]) : [body as string | Buffer];
  return texts.some((text) => !searched?.has(text) && holdsKey(text));
}

export function ownKeyFailure(): ToolFailure {
  return plainFailure(
    'invalid_arguments',
    'the request would hold an API key of this service, which is never sent to an upstream; leave it out of the arguments',
  );
}

function holdsKey(content: string | Buffer | undefined): boolean {
  if (content === undefined) return false;
  return holdsApiKey(typeof content === 'string' ? content : Buffer.from(content).toString('latin1'));
}
