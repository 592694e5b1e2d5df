import type { LoginServer } from '../login-server.ts';

/** Request of a client that a person is asked to allow. It travels sealed in the consent form. */
export type ConsentRequest = {
  consentId: string;
  clientId: string;
  clientName: string;
  redirectUri: string;
  state: string | undefined;
  codeChallenge: string;
  scope: string;
  /** Hash of the cookie of the browser that was shown the form. */
  browser: string;
  expiresAt: number;
};

/** Context of the seal: a form of another server, or of an earlier agreement of this one, does not open. */
export function consentContext(server: LoginServer): string {
  return `consent|${server.id}|${server.agreement}`;
}
