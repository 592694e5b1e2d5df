import { isUnavailableError, Unauthenticated } from '@toolhost/errors/errors';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import { isStored } from '@toolhost/tool-config/authentication';
import type { Caller } from '../callers/caller.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';
import { getMissingScopes } from '../response/missing-scopes.ts';
import type { Call } from './call.ts';

export type StepUpDeps = {
  /**
   * Records the scopes that the upstream misses, so that the next login may include them. Returns the scopes to log in
   * with. Undefined if another login would not help, or if this login got a challenge within the last minute.
   */
  requestScopes: (
    server: HostedServer,
    caller: Caller,
    missing: readonly string[],
  ) => Promise<readonly string[] | undefined>;
};

/**
 * Turns a 403 that names missing scopes into a challenge, with which the client logs in again (MCP, authorization,
 * "Step-Up Authorization Flow"). Any other 403 remains a result.
 * @throws Unauthenticated
 */
export async function challengeForScopes(call: Call, response: UpstreamResponse, deps: StepUpDeps): Promise<void> {
  const { server, tool, caller, sensitive } = call;
  // Another login changes nothing for a request that carried only stored credentials.
  if (tool.request.credentials.every(isStored)) return;
  const missing = getMissingScopes(response, sensitive);
  const scopes = missing && (await deps.requestScopes(server, caller, missing).catch(ignoreUnavailable));
  if (!scopes) return;
  const message = `the API requires permissions that this login does not have: ${missing.join(' ')}; log in again to grant them`;
  throw new Unauthenticated('forbidden', message, scopes);
}

/** Without the database, the agent gets the response as a result. */
function ignoreUnavailable(error: unknown): undefined {
  if (!isUnavailableError(error)) throw error;
}
