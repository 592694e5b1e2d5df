import type { Keyring } from '../../store/sealing/sealing.ts';
import type { LoginServer } from '../login-server.ts';

/** Context of the seal: binds a refresh token to one server with its present endpoints, and to one client. */
function wrapContext(server: LoginServer, clientId: string): string {
  return `passthrough|${server.id}|${server.agreement}|${clientId}`;
}

/** Seals a provider's refresh token for the agent, so that it is of use only here, with our client secret. */
export function wrapRefreshToken(
  keyring: Keyring,
  server: LoginServer,
  clientId: string,
  refreshToken: string,
): string {
  return `thp_${keyring.seal(refreshToken, wrapContext(server, clientId))}`;
}

/** The provider's refresh token, or undefined when `wrapped` was not sealed by us for this server and client. */
export function openRefreshToken(
  keyring: Keyring,
  server: LoginServer,
  clientId: string,
  wrapped: string,
): string | undefined {
  if (!wrapped.startsWith('thp_')) return undefined;
  try {
    return keyring.open(wrapped.slice('thp_'.length), wrapContext(server, clientId));
  } catch {
    // Sealed for another server or client, or not by us: the answer is the same.
    return undefined;
  }
}
