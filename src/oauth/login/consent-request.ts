import type { LoginServer } from '../login-server.ts';

/** What a client asked for and a person is asked to allow; it travels sealed in the consent form. */
export type ConsentRequest = {
  consentId: string;
  clientId: string;
  clientName: string;
  redirectUri: string;
  state: string | undefined;
  codeChallenge: string;
  scope: string;
  /** Hash of the cookie of the browser that sees the form. */
  browser: string;
  expiresAt: number;
};

/** What the seal is bound to: a form of another server, or shown before this one changed what people agree to, does not open. */
export function consentContext(server: LoginServer): string {
  return `consent|${server.id}|${server.agreement}`;
}
