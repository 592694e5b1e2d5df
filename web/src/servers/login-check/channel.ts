/** The channel by which the redirect URI of a login hands its answer to the page that began it; only within this origin. */
export type LoginMessage =
  | { kind: 'answer'; state: string; code?: string; issuer?: string; error?: string; description?: string }
  | { kind: 'taken'; state: string }
  | { kind: 'finished'; state: string; isGood: boolean };

export const returnPath = '/login-check';

export function openChannel(): BroadcastChannel {
  return new BroadcastChannel('toolhost-login-check');
}
