import type { ServerRecord } from '../api-types.ts';

/** Returns true if clients open a login page when they connect. */
export function hasLoginPage({ access }: ServerRecord): boolean {
  return access === 'oauth' || access === 'passthrough' || access === 'login';
}

/** Returns true if a call needs a token of the API that the server does not store. */
export function needsCallerToken({ access, open }: ServerRecord): boolean {
  return access === 'oauth' || access === 'passthrough' || (access === 'caller_token' && !open);
}
