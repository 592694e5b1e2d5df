import { agreementFor } from '../../domain/credentials/agreement.ts';
import { OAuthError } from '../../errors.ts';
import { insertAuthorization } from '../../store/logins/authorizations.ts';
import { hashOf, newSecret } from '../credentials.ts';
import type { LoginServer } from '../login-server.ts';
import { type OAuthAnswer, type OAuthParts, spans } from '../parts.ts';
import { clientAnswerPage } from './client-redirect.ts';
import { consentCookie, cookieJar, loginCookie, loginPrefix } from './cookies.ts';
import { sealLoginSecrets } from './login-secrets.ts';
import { departurePage } from './pages.ts';

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

/**
 * `POST /mcp/{slug}/consent`: the person has decided. Only now is a login stored, and bound to this browser by a cookie.
 * Both answers are pages instead of redirects: browsers apply `form-action` to redirects that follow a form.
 * @throws OAuthError access_denied when the form does not belong to this browser, or was used before
 */
export async function decide(
  server: LoginServer,
  form: URLSearchParams,
  headers: { cookie: string | undefined; fetchSite: string | undefined },
  parts: OAuthParts,
): Promise<OAuthAnswer> {
  checkSameSite(headers.fetchSite);
  const request = openRequest(server, form, parts);
  checkBrowser(request, headers.cookie, parts);
  checkAge(request, parts);
  const jar = cookieJar(parts.baseUrl);
  const used = jar.clear(consentCookie(hashOf(request.consentId)));
  if (form.get('decision') !== 'allow') {
    const error = new OAuthError('access_denied', 'the person did not allow it');
    return clientAnswerPage(server, request.redirectUri, { error, state: request.state }, [used]);
  }
  const state = newSecret(parts.random);
  const verifier = newSecret(parts.random);
  const binding = newSecret(parts.random);
  const now = parts.now();
  const id = hashOf(state);
  // Before the form counts as sent: where the provider does not answer, the person can send it again.
  const url = await server.provider.authorizationUrl({ state, verifier, scope: request.scope });
  const isFirst = await insertAuthorization(parts.db, {
    id,
    workspace_id: server.workspaceId,
    server_id: server.id,
    consent_id: hashOf(request.consentId),
    client_id: request.clientId,
    client_name: request.clientName,
    redirect_uri: request.redirectUri,
    code_challenge: request.codeChallenge,
    scope: request.scope,
    binding_hash: hashOf(binding),
    sealed_verifier: sealLoginSecrets(parts.keyring, id, {
      verifier,
      clientState: request.state,
      agreement: agreementFor(server.agreement, request.view),
    }),
    created_at: now,
    expires_at: now + spans.login,
  });
  if (!isFirst) throw refused('this form was sent before; start again in the client');
  parts.onEvent('started');
  const cookie = jar.set(loginCookie(id), binding, spans.login);
  const cookies = [cookie, used, ...jar.clearOlder(headers.cookie, loginPrefix)];
  return { kind: 'page', status: 200, html: departurePage(server, url), cookies };
}

function refused(message: string): OAuthError {
  return new OAuthError('access_denied', message);
}

function checkSameSite(fetchSite: string | undefined): void {
  if (fetchSite !== undefined && fetchSite !== 'same-origin') throw refused('the form was sent from another site');
}

function openRequest(server: LoginServer, form: URLSearchParams, parts: OAuthParts): ConsentRequest {
  const context = consentContext(server, form.get('view') ?? undefined);
  const request = parts.keyring.openReturned(form.get('request') ?? '', context);
  if (request === undefined) throw refused('the form is not one that this server has shown');
  return JSON.parse(request) as ConsentRequest;
}

function checkBrowser(request: ConsentRequest, cookie: string | undefined, parts: OAuthParts): void {
  const browser = cookieJar(parts.baseUrl).read(cookie, consentCookie(hashOf(request.consentId)));
  if (browser === undefined || hashOf(browser) !== request.browser) {
    throw refused(
      'the form was sent before or shown in another browser, or cookies are off; start again in the client',
    );
  }
}

function checkAge(request: ConsentRequest, parts: OAuthParts): void {
  if (request.expiresAt < parts.now()) throw refused('the form has expired; start again in the client');
}
