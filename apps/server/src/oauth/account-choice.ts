import { hashSecret, newSecret } from '@toolhost/credentials/ids';
import { OAuthError } from '@toolhost/errors/errors';
import {
  type Authorization,
  consumeAuthorization,
  insertAuthorization,
  reserveLoginBytes,
} from '../store/logins/grants.ts';
import { contexts, createKeyring } from '../store/sealing/sealing.ts';
import type { LoginSecrets } from './consent.ts';
import { createCookieStore, getLoginCookieName } from './login-cookies.ts';
import { renderAccountPage } from './login-pages.ts';
import {
  type AccountChoice,
  type BrowserResponse,
  durations,
  type LoginResult,
  type LoginServer,
  type OAuthDeps,
} from './oauth-deps.ts';

/** A login that is complete except for the account that the person chooses. */
type UnfinishedLogin = { result: LoginResult; secrets: LoginSecrets; choices: readonly AccountChoice[] };

/** Maximum size of the stored accounts, in bytes. */
const maxChoiceBytes = 128 * 1024;

/**
 * Stores a login whose person has several accounts, and shows them. Its tokens are sealed with a secret that only the
 * form contains, and like the consent form it is bound to the browser by a cookie.
 * @throws OAuthError temporarily_unavailable, server_error
 */
export async function offerAccounts(
  server: LoginServer,
  { login, ...unfinished }: UnfinishedLogin & { login: Authorization },
  deps: OAuthDeps,
): Promise<BrowserResponse> {
  const formSecret = newSecret(deps.random);
  const bindingSecret = newSecret(deps.random);
  const id = toLoginId(formSecret);
  const now = deps.now();
  const text = JSON.stringify(unfinished);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxChoiceBytes)
    throw new OAuthError('server_error', 'the provider sent more data about the accounts of this person than fits');
  const { workspaceId } = unfinished.result;
  if (!(await reserveLoginBytes(deps.db, { workspaceId, serverId: server.id, bytes }, now)))
    throw new OAuthError(
      'temporarily_unavailable',
      'new logins have reached their storage limit for this minute; retry in a minute',
    );
  const inner = createKeyring([Buffer.from(formSecret)]).seal(text, getContext(id));
  await insertAuthorization(deps.db, {
    ...login,
    id,
    consent_id: hashSecret(newSecret(deps.random)),
    binding_hash: hashSecret(bindingSecret),
    sealed_verifier: deps.keyring.seal(inner, contexts.login(id)),
    created_at: now,
    expires_at: now + durations.login,
  });
  const cookie = createCookieStore(deps.baseUrl).set(getLoginCookieName(id), bindingSecret, durations.login);
  return { status: 200, html: renderAccountPage(server, unfinished.choices, formSecret), cookies: [cookie] };
}

/** Returns the id of the stored login. It differs from that of a login whose state is the same text. */
function toLoginId(formSecret: string): string {
  return hashSecret(`account ${formSecret}`);
}

function getContext(id: string): string {
  return `account choice|${id}`;
}

type ChosenLogin = {
  login: Authorization;
  secrets: LoginSecrets;
  cookies: string[];
  /** Undefined if the person canceled. */
  result: LoginResult | undefined;
};

/**
 * Takes the login whose account a person chose in the form.
 * @throws OAuthError access_denied if the form does not belong to this browser, or was already used
 */
export async function takeChosenLogin(
  server: LoginServer,
  form: URLSearchParams,
  { cookie, fetchSite }: { cookie: string | undefined; fetchSite: string | undefined },
  deps: OAuthDeps,
): Promise<ChosenLogin> {
  if (fetchSite !== undefined && fetchSite !== 'same-origin')
    throw new OAuthError('access_denied', 'the form was sent from another site');
  const formSecret = form.get('login') ?? '';
  const id = toLoginId(formSecret);
  const cookieStore = createCookieStore(deps.baseUrl);
  const binding = cookieStore.read(cookie, getLoginCookieName(id)) ?? '';
  const match = { id, serverId: server.id, bindingHash: hashSecret(binding), now: deps.now() };
  const login = await consumeAuthorization(deps.db, match);
  if (!login)
    throw new OAuthError(
      'access_denied',
      'the form was already sent, has expired, or was shown in another browser; start again in the client',
    );
  const inner = deps.keyring.open(login.sealed_verifier, contexts.login(id));
  const text = createKeyring([Buffer.from(formSecret)]).open(inner, getContext(id));
  const { result, secrets, choices } = JSON.parse(text) as UnfinishedLogin;
  const cookies = [cookieStore.clear(getLoginCookieName(id))];
  if (form.get('decision') !== 'continue') return { login, secrets, cookies, result: undefined };
  const choice = choices.find((_, index) => String(index) === form.get('account'));
  if (!choice) throw new OAuthError('invalid_request', 'no account was chosen; start again in the client');
  const { tokens } = result;
  return {
    login,
    secrets,
    cookies,
    result: { ...result, tokens: { ...tokens, values: { ...tokens.values, ...choice.values } } },
  };
}
