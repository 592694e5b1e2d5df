import { agreementFor } from '../../domain/credentials/agreement.ts';
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
  /** The view that the login is limited to; undefined for the whole server. */
  view: string | undefined;
  /** Hash of the cookie of the browser that was shown the form. */
  browser: string;
  expiresAt: number;
};

/** Context of the seal: a form of another server, another view, or an earlier agreement of this one, does not open. */
export function consentContext(server: LoginServer, view: string | undefined): string {
  return `consent|${server.id}|${agreementFor(server.agreement, view)}`;
}
