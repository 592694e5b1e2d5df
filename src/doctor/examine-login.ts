import { clientsThat, inWords } from '../domain/clients/clients.ts';
import {
  checkAuthorization,
  checkPkceIsRequired,
  checkRedirectUris,
  checkTokenEndpoint,
  type Trial,
} from './authorization.ts';
import { type Fields, ok, problem, type Verdict, warning } from './check.ts';
import { checkRegistrationMetadata } from './check-metadata.ts';
import { checkChallenge, checkCors, documentUrls, findIssuer, findResource, readChallenge } from './discovery.ts';
import type { Examination } from './examination.ts';
import { checkKnownClients, checkRegistration, ownRedirectUri, register } from './registration.ts';
import { initialize, post } from './session.ts';
import type { Answered } from './web.ts';

/** Examines all of a login but its end: the challenge, the metadata, registration, the begin, the token endpoint. */
export async function examineLogin(examination: Examination, refusal: Answered): Promise<void> {
  const { address, report, web } = examination;
  const found = await findResource(web, address, refusal);
  const { metadataUrl, scheme } = readChallenge(refusal);
  const isLogin = found.resource !== undefined || metadataUrl !== undefined;
  const challenge = isLogin ? checkChallenge(refusal) : checkTokenChallenge(scheme);
  report('challenge', 'A request without a credential is refused with a challenge', challenge);
  if (!isLogin) {
    const clients = clientsThat(({ onlyLogsIn }) => onlyLogsIn);
    const text = 'It can only log in, and this server announces no login.';
    const detail = `No login is announced, so people give their client a token. ${inWords(clients)} can only log in.`;
    const reasons = [{ clients, text, stops: true as const }];
    report('sign_in', 'Clients can present the credential', { ...warning(detail, clients), reasons });
    return;
  }
  report('resource_metadata', 'The login is announced', found.verdict);
  if (!found.resource) return;
  const server = await findIssuer(web, found.resource);
  report('server_metadata', 'The login is described', server.verdict);
  report('cors', 'Pages may read the metadata', await checkCors(web, documentUrls(address, refusal, server.issuer)));
  if (!server.metadata) return;
  const isWhole = server.verdict.status !== 'problem' || typeof server.metadata.authorization_endpoint === 'string';
  if (isWhole) await examineClient(examination, server.metadata);
}

/** Checks the refusal of a server that takes only tokens and API keys (RFC 6750, 3). */
function checkTokenChallenge(scheme: string | undefined): Verdict {
  if (scheme?.toLowerCase() === 'bearer') return ok('401, which asks for a bearer and announces no login.', []);
  return warning('401 without "WWW-Authenticate: Bearer …", which says what is missing.', []);
}

async function examineClient(examination: Examination, metadata: Fields): Promise<void> {
  const { address, report, web, registers } = examination;
  const announced = report('registration', 'Clients can get a client id', checkRegistrationMetadata(metadata));
  const endpoint = metadata.registration_endpoint;
  if (announced.status === 'problem' || !registers || typeof endpoint !== 'string' || !URL.canParse(endpoint)) return;
  const page = await register(web, endpoint, 'Toolhost doctor', [ownRedirectUri]);
  const registered = report('register', 'A client registers', checkRegistration(page, [ownRedirectUri]));
  const clientId = page.json?.client_id;
  if (registered.status === 'problem' || typeof clientId !== 'string') return;
  report('redirect_uris', 'The redirect URIs of known clients are taken', await checkKnownClients(web, endpoint));
  const trial: Trial = { web, metadata, clientId, address };
  if (!hasUrl(metadata, 'authorization_endpoint') || !hasUrl(metadata, 'token_endpoint')) return;
  if (report('authorize', 'A login begins', await checkAuthorization(trial)).status !== 'problem') {
    report('pkce', 'PKCE is required', await checkPkceIsRequired(trial));
    report('redirect_uri', 'Only registered redirect URIs are taken', await checkRedirectUris(trial));
  }
  report('token_endpoint', 'The token endpoint answers as clients expect', await checkTokenEndpoint(trial));
  const made = await post({ web, address, token: 'made-up-token-of-toolhost-doctor' }, initialize);
  report('expired_token', 'A token that is not valid is refused with 401', checkMadeUpToken(made));
}

const hasUrl = (metadata: Fields, name: string) => typeof metadata[name] === 'string' && URL.canParse(metadata[name]);

function checkMadeUpToken({ status }: Answered): Verdict {
  if (status === 401) return ok('401, so clients log in again when their token expires.');
  if (status === 200) return ok('It is accepted until a tool is called, so this server passes tokens on.');
  return problem(
    `A token that is not valid is answered with ${status} instead of 401, so clients do not log in again when it expires.`,
  );
}
