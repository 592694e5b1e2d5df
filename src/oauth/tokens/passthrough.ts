import { agreementFor } from '../../domain/credentials/agreement.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';
import type { LoginServer } from '../login-server.ts';

/** Context of the seal: binds a refresh token to one server with its present endpoints, and to one client. */
function wrapContext(server: LoginServer, clientId: string, view: string | undefined): string {
  return `passthrough|${server.id}|${agreementFor(server.agreement, view)}|${clientId}`;
}

/** Seals a provider's refresh token for the agent, so that it is of use only here, with our client secret. */
export function wrapRefreshToken(
  keyring: Keyring,
  server: LoginServer,
  clientId: string,
  { refreshToken, view }: HeldToken,
): string {
  return `thp_${keyring.seal(refreshToken, wrapContext(server, clientId, view))}`;
}

/** A provider's refresh token, and the view that its login is limited to. */
export type HeldToken = { refreshToken: string; view: string | undefined };

/** The provider's refresh token, or undefined when `wrapped` was not sealed by us for this server and client. */
export function openRefreshToken(
  keyring: Keyring,
  server: LoginServer,
  clientId: string,
  wrapped: string,
): HeldToken | undefined {
  if (!wrapped.startsWith('thp_')) return undefined;
  for (const view of [undefined, ...server.views]) {
    const refreshToken = keyring.openReturned(wrapped.slice('thp_'.length), wrapContext(server, clientId, view));
    if (refreshToken !== undefined) return { refreshToken, view };
  }
  return undefined;
}
