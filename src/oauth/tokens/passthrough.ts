import type { Keyring } from '../../store/sealing/sealing.ts';
import type { LoginServer } from '../login-server.ts';

/** Binds a wrapped refresh token to one server, its endpoints as they were, and one client. */
function place(server: LoginServer, clientId: string): string {
  return `passthrough|${server.id}|${server.agreement}|${clientId}`;
}

/** A provider's refresh token as the agent holds it: sealed, so that it is of use only here, with our client secret. */
export function wrapRefreshToken(
  keyring: Keyring,
  server: LoginServer,
  clientId: string,
  refreshToken: string,
): string {
  return `thp_${keyring.seal(refreshToken, place(server, clientId))}`;
}

/** The provider's refresh token, or undefined when this is none that we wrapped for this server and client. */
export function openRefreshToken(
  keyring: Keyring,
  server: LoginServer,
  clientId: string,
  wrapped: string,
): string | undefined {
  if (!wrapped.startsWith('thp_')) return undefined;
  try {
    return keyring.open(wrapped.slice('thp_'.length), place(server, clientId));
  } catch {
    // Sealed for somebody else, or not by us: the caller answers the same to both.
    return undefined;
  }
}
