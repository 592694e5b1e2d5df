import { z } from 'zod';
import {
  type Check,
  checkHints,
  checkRegistrationMetadata,
  checkResourceMetadata,
  checkServerMetadata,
  checkTokens,
  checkToolCount,
  checkToolList,
  checkToolNames,
  everyClient,
  loginClients,
  ok,
  pathReasons,
  problem,
  type Verdict,
  warning,
  warningOf,
} from '../../doctor/checks.ts';
import { checkInitialize, resultOf } from '../../doctor/session.ts';
import { type Fields, objectOf, textsOf } from '../../doctor/web.ts';
import { clientsThat, inWords } from '../../domain/clients/clients.ts';
import { configSecrets, type ServerConfig } from '../../domain/config/server-config.ts';
import { accessOf } from '../../domain/config/server-wide.ts';
import { enabledTools, toolList } from '../../domain/config/tool.ts';
import { viewConfig } from '../../domain/config/view.ts';
import { modernRevision } from '../../domain/mcp.ts';
import { firstNames, nearestOrAll, newGuesses } from '../../domain/problems.ts';
import { estimatedTokens, noTools } from '../../domain/warnings/warnings.ts';
import { type MaybePromise, nextTurn } from '../../domain/work/next-turn.ts';
import { AppError } from '../../errors.ts';
import { findGrants } from '../../store/logins/grants.ts';
import { findSecrets, type SecretInfo } from '../../store/servers/secrets.ts';
import { type ConnectionProbe, operation, servingOf } from '../operation.ts';
import { forEachSecretUse } from '../servers/secrets.ts';
import { movedSecrets } from '../servers/store-server.ts';
import { getServer, slugInput, viewInput } from '../shapes.ts';

const checkConnection = operation({
  name: 'checkConnection',
  summary: 'Simulate how clients such as Claude, ChatGPT, Cursor, and VS Code connect, and report which fail and why',
  description: 'Nothing is sent to the upstream or the provider.',
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    view: viewInput.optional().describe('View of the server to check at its own URL.'),
  }),
  output: z.object({
    checks: z
      .array(
        z.object({
          id: z.string(),
          title: z.string(),
          status: z.enum(['ok', 'warning', 'problem']),
          detail: z.string(),
          clients: z.array(z.string()).max(50).describe('Clients that the check concerns.'),
        }),
      )
      .max(50),
  }),
  async run(context, { slug, view }) {
    const { db, actor } = context;
    const server = await getServer(context, slug);
    const config = configOf(server.config, view);
    const atView = view === undefined ? '' : `/${view}`;
    const hostAddress = context.ownAddress(slug);
    const logins = await findGrants(db, actor.workspaceId, { slug, slugs: undefined }, { limit: 1, after: undefined });
    const checks = await connectionChecks({
      config,
      probe: await servingOf(context).probeConnection(slug, view),
      address: context.serverUrl(slug) + atView,
      issuer: context.serverUrl(slug),
      hostAddress: hostAddress === undefined ? undefined : hostAddress + atView,
      callbackUrl: context.callbackUrl(slug),
      secrets: await findSecrets(db, server),
      hasLogins: logins.rows.length > 0,
    });
    return { checks };
  },
});

/** Returns the configuration of the server, or of a view. @throws AppError notFound */
function configOf(config: ServerConfig, name: string | undefined): ServerConfig {
  if (name === undefined) return config;
  const { views = {} } = config;
  const view = Object.hasOwn(views, name) ? views[name] : undefined;
  if (view) return viewConfig(config, view);
  const near = nearestOrAll(name, Object.keys(views), newGuesses());
  throw new AppError('notFound', `the server has no view ${JSON.stringify(name)}${near}`);
}

export const connectionOperations = { checkConnection };

/** Input of the checks. */
type Examined = {
  config: ServerConfig;
  probe: ConnectionProbe;
  address: string;
  /** URL of the authorization server, which is the URL of the server, also for a view. */
  issuer: string;
  /** URL on the separate host of the server, if it has one. */
  hostAddress: string | undefined;
  callbackUrl: string;
  secrets: readonly SecretInfo[];
  /** True if anyone has ever completed a login. */
  hasLogins: boolean;
};

type Rule = { id: string; title: string; onlyLogins?: true; check: (examined: Examined) => MaybePromise<Verdict> };

/** Checks of the requirements of clients, in the order in which clients would fail. */
const rules: readonly Rule[] = [
  { id: 'address', title: 'The URL is reachable', check: checkAddress },
  { id: 'challenge', title: 'A request without a credential gets a challenge', check: checkChallenge },
  { id: 'sign_in', title: 'Clients can present the credential', check: checkSignIn },
  { id: 'resource_metadata', title: 'The login is announced', onlyLogins: true, check: checkAnnouncedLogin },
  { id: 'server_metadata', title: 'The login metadata is valid', onlyLogins: true, check: checkIssuer },
  { id: 'registration', title: 'Clients can register', onlyLogins: true, check: checkRegistration },
  { id: 'provider', title: 'The provider redirects people back', onlyLogins: true, check: checkProvider },
  { id: 'handshake', title: 'The server introduces itself', check: checkHandshake },
  { id: 'tool_list', title: 'The tool list is well-formed', check: checkTools },
  { id: 'tool_count', title: 'The number of tools is within limits', check: checkCount },
  { id: 'tool_names', title: 'The tool names are usable', check: checkNames },
  { id: 'tool_hints', title: 'The tools have annotations', check: ({ probe }) => checkHints(listedTools(probe)) },
  {
    id: 'token_estimate',
    title: 'The tool list is affordable',
    check: ({ config }) => checkTokens(estimatedTokens(config)),
  },
  { id: 'secrets', title: 'Every secret has a value', check: checkSecrets },
];

async function connectionChecks(examined: Examined): Promise<Check[]> {
  const checks: Check[] = [];
  for (const { id, title, onlyLogins, check } of rules) {
    if (onlyLogins && !examined.config.oauth) continue;
    // Some rules walk through the whole configuration.
    await nextTurn();
    const { reasons: _reasons, ...verdict } = await check(examined);
    checks.push({ id, title, clients: [...(onlyLogins ? loginClients : everyClient)], ...verdict });
  }
  return checks;
}

function checkAddress({ address, hostAddress }: Examined): Verdict {
  const hosted = clientsThat(({ isHosted }) => isHosted);
  const { protocol, hostname } = new URL(address);
  if (protocol === 'https:') {
    const picky = pathReasons(hostAddress ?? address);
    return picky.length > 0 ? warningOf(picky) : ok(`${address} uses HTTPS.`);
  }
  const where = /^(localhost|127\.|\[::1\])/.test(hostname)
    ? 'is only reachable from this machine'
    : 'does not use HTTPS';
  return warning(`${address} ${where}. ${inWords(hosted)} connect from the internet and require HTTPS.`, hosted);
}

function checkChallenge({ probe: { refusal }, config }: Examined): Verdict {
  if (refusal?.status !== 401) return problem('The response is not a 401, so clients do not ask for a credential.');
  const hasHint = refusal.challenge.includes('resource_metadata=');
  if (config.oauth)
    return hasHint ? ok('401, with a link to the login.') : problem('401, without a link to the login.');
  return hasHint ? problem('401, with a link to a login that does not exist.') : ok('401, without a login.');
}

function checkSignIn({ config }: Examined): Verdict {
  const limited = clientsThat(({ onlyLogsIn }) => onlyLogsIn);
  if (config.oauth) return ok('People log in and do not have to copy a credential.');
  const what = accessOf(config) === 'api_key' ? 'an API key of this workspace' : 'an upstream token';
  return warning(
    `Callers send ${what}. ${inWords(limited)} can only log in. Add oauth to the server to support them.`,
    limited,
  );
}

function checkAnnouncedLogin({ probe: { resource }, address, issuer }: Examined): Verdict {
  if (!resource) return problem('The challenge does not link to resource metadata.');
  const verdict = checkResourceMetadata(resource, address);
  const isOurs = textsOf(resource.authorization_servers).includes(issuer);
  return verdict.status === 'ok' && !isOurs
    ? problem('The resource metadata does not name the authorization server of Toolhost.')
    : verdict;
}

function checkIssuer({ probe: { issuer: metadata }, issuer }: Examined): Verdict {
  if (!metadata) return problem('The authorization server has no metadata at the location that RFC 8414 requires.');
  const verdict = checkServerMetadata(metadata, issuer);
  return verdict.status === 'ok' ? worseOf(checkRegistrationMetadata(metadata), verdict) : verdict;
}

const worseOf = (one: Verdict, other: Verdict): Verdict => (one.status === 'ok' ? other : one);

function checkRegistration({ probe: { refusedClients } }: Examined): Verdict {
  if (refusedClients.length === 0) return ok('The redirect URIs of all these clients are accepted.');
  return problem(
    `Refused: ${refusedClients.map(({ client, reason }) => `${client} (${reason})`).join('; ')}.`,
    refusedClients.map(({ client }) => client),
  );
}

function checkProvider({ config, secrets, callbackUrl, hasLogins }: Examined): Verdict {
  const secret = secrets.find(({ name }) => name === configSecrets.clientSecret);
  const origin = new URL(config.oauth?.token_url ?? callbackUrl).origin;
  if (config.oauth?.client_auth !== 'none' && !secret?.origins.includes(origin))
    return problem('No client secret is stored for the host of token_url. Set oauth.client_secret.');
  if (hasLogins) return ok('At least one login was completed.');
  return warning(`No one has logged in yet. Register exactly this redirect URI with the provider: ${callbackUrl}`);
}

function checkHandshake({ probe: { answers } }: Examined): Verdict {
  const initialized = checkInitialize(resultOf(answers.initialize));
  if (initialized.status !== 'ok') return initialized;
  const { supportedVersions } = resultOf(answers.discover);
  if (!textsOf(supportedVersions).includes(modernRevision))
    return problem('The response to server/discover is incomplete.');
  return ok(`Stateful and stateless protocol versions are supported, up to ${modernRevision}.`);
}

function checkTools({ probe: { answers }, config }: Examined): Verdict {
  const expected = toolList(config).length;
  for (const reply of [answers.tools, answers.modernTools]) {
    const { tools } = resultOf(reply);
    if (!Array.isArray(tools) || tools.length !== expected) return problem('The response to tools/list is incomplete.');
    const verdict = checkToolList(tools.map(objectOf));
    if (verdict.status !== 'ok') return verdict;
  }
  return ok('Every tool has a name and an input schema of type object.');
}

function checkCount({ config }: Examined): Verdict {
  const none = noTools(config);
  const count = enabledTools(config).length === 0 ? 0 : toolList(config).length;
  return checkToolCount(count, none.charAt(0).toUpperCase() + none.slice(1));
}

function checkNames({ config }: Examined): Verdict {
  return checkToolNames(namesOf(toolList(config)), config.slug);
}

function listedTools({ answers }: ConnectionProbe): Fields[] {
  const { tools } = resultOf(answers.tools);
  return Array.isArray(tools) ? tools.map(objectOf) : [];
}

const namesOf = (named: readonly { name: string }[]) => named.map(({ name }) => name);

async function checkSecrets({ config, secrets }: Examined): Promise<Verdict> {
  const used = new Set<string>();
  await forEachSecretUse(config, enabledTools(config), ({ names }) => {
    for (const name of names) used.add(name);
  });
  const wanted = [...used];
  const stored = new Set(namesOf(secrets));
  const missing = wanted.filter((name) => !stored.has(name));
  if (missing.length > 0) return problem(`Calls will fail until these secrets have a value: ${firstNames(missing)}.`);
  const moved = movedSecrets(secrets, config);
  if (moved.length > 0)
    return problem(`Set these secrets again, because the tools now call other hosts: ${firstNames(namesOf(moved))}.`);
  return ok(wanted.length === 0 ? 'No secrets are required.' : `${firstNames(wanted)}.`);
}
