import { AppError } from '@toolhost/errors/errors';
import { createSuggestionBudget, formatFirstNames, suggestNearestOrList } from '@toolhost/errors/problems';
import { type MaybePromise, yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { findClientNames, joinNames } from '@toolhost/mcp-clients/clients';
import {
  allClients,
  type Check,
  checkHints,
  checkRegistrationMetadata,
  checkResourceMetadata,
  checkServerMetadata,
  checkTokens,
  checkToolCount,
  checkToolList,
  checkToolNames,
  createWarning,
  findPathReasons,
  loginClients,
  ok,
  problem,
  type Verdict,
  warning,
} from '@toolhost/mcp-doctor/checks';
import { checkInitialize, getResult } from '@toolhost/mcp-doctor/session';
import { asObject, type Fields, toStrings } from '@toolhost/mcp-doctor/web';
import { statelessRevision } from '@toolhost/mcp-protocol/mcp';
import { getTokenOrigins } from '@toolhost/tool-config/oauth';
import { configSecrets, type ServerConfig } from '@toolhost/tool-config/server-config';
import { getAccess } from '@toolhost/tool-config/server-wide';
import { createToolList, getEnabledTools } from '@toolhost/tool-config/tool';
import { createViewConfig } from '@toolhost/tool-config/view';
import { z } from 'zod';
import { findGrants } from '../../store/logins/grants.ts';
import { findSecrets, type SecretInfo } from '../../store/servers/secrets.ts';
import { estimateTokens, getNoToolsMessage } from '../../warnings.ts';
import { getServer } from '../find-server.ts';
import { type ConnectionProbe, operation, requireServing } from '../operation.ts';
import { forEachSecretUse } from '../servers/secrets.ts';
import { findMovedSecrets } from '../servers/store-server.ts';
import { slugInput, viewInput } from '../shapes.ts';

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
    const config = getCheckedConfig(server.config, view);
    const atView = view === undefined ? '' : `/${view}`;
    const hostUrl = context.serverHostUrl(slug);
    const logins = await findGrants(db, actor.workspaceId, { slug, slugs: undefined }, { limit: 1, after: undefined });
    const checks = await connectionChecks({
      config,
      probe: await requireServing(context).probeConnection(slug, view),
      url: context.serverUrl(slug) + atView,
      issuer: context.serverUrl(slug),
      hostUrl: hostUrl === undefined ? undefined : hostUrl + atView,
      callbackUrl: context.callbackUrl(slug),
      secrets: await findSecrets(db, server),
      hasLogins: logins.rows.length > 0,
    });
    return { checks };
  },
});

/** Returns the configuration of the server, or of a view. @throws AppError notFound */
function getCheckedConfig(config: ServerConfig, name: string | undefined): ServerConfig {
  if (name === undefined) return config;
  const { views = {} } = config;
  const view = Object.hasOwn(views, name) ? views[name] : undefined;
  if (view) return createViewConfig(config, view);
  const near = suggestNearestOrList(name, Object.keys(views), createSuggestionBudget());
  throw new AppError('notFound', `the server has no view ${JSON.stringify(name)}${near}`);
}

export const connectionOperations = { checkConnection };

/** Input of the checks. */
type CheckInput = {
  config: ServerConfig;
  probe: ConnectionProbe;
  url: string;
  /** URL of the authorization server, which is the URL of the server, also for a view. */
  issuer: string;
  /** URL on the separate host of the server, if it has one. */
  hostUrl: string | undefined;
  callbackUrl: string;
  secrets: readonly SecretInfo[];
  /** True if anyone has ever completed a login. */
  hasLogins: boolean;
};

/** `requires` names what the rule is about: any login, or one at a provider of the server. */
type Rule = {
  id: string;
  title: string;
  requires?: 'login' | 'provider';
  check: (input: CheckInput) => MaybePromise<Verdict>;
};

/** Checks of the requirements of clients, in the order in which clients would fail. */
const rules: readonly Rule[] = [
  { id: 'address', title: 'URL', check: checkAddress },
  { id: 'challenge', title: 'Challenge without a credential', check: checkChallenge },
  { id: 'sign_in', title: 'Credential', check: checkSignIn },
  { id: 'resource_metadata', title: 'Login discovery', requires: 'login', check: checkAnnouncedLogin },
  { id: 'server_metadata', title: 'Login metadata', requires: 'login', check: checkIssuer },
  { id: 'registration', title: 'Client registration', requires: 'login', check: checkRegistration },
  { id: 'provider', title: 'Redirect from the provider', requires: 'provider', check: checkProvider },
  { id: 'handshake', title: 'Handshake', check: checkHandshake },
  { id: 'tool_list', title: 'Tool list', check: checkTools },
  { id: 'tool_count', title: 'Number of tools', check: checkCount },
  { id: 'tool_names', title: 'Tool names', check: checkNames },
  { id: 'tool_hints', title: 'Tool annotations', check: ({ probe }) => checkHints(listedTools(probe)) },
  {
    id: 'token_estimate',
    title: 'Tokens in every conversation',
    check: ({ config }) => checkTokens(estimateTokens(config)),
  },
  { id: 'secrets', title: 'Secrets', check: checkSecrets },
];

const hasLogin = ({ oauth, login }: ServerConfig) => oauth !== undefined || login !== undefined;

async function connectionChecks(input: CheckInput): Promise<Check[]> {
  const checks: Check[] = [];
  for (const { id, title, requires, check } of rules) {
    if (requires === 'provider' && !input.config.oauth) continue;
    if (requires === 'login' && !hasLogin(input.config)) continue;
    // Some rules walk through the whole configuration.
    await yieldToEventLoop();
    const { reasons: _reasons, ...verdict } = await check(input);
    checks.push({ id, title, clients: [...(requires ? loginClients : allClients)], ...verdict });
  }
  return checks;
}

function checkAddress({ url, hostUrl }: CheckInput): Verdict {
  const hostedClients = findClientNames(({ isHosted }) => isHosted);
  const { protocol, hostname } = new URL(url);
  if (protocol === 'https:') {
    const problems = findPathReasons(hostUrl ?? url);
    return problems.length > 0 ? createWarning(problems) : ok(`${url} uses HTTPS.`);
  }
  const where = /^(localhost|127\.|\[::1\])/.test(hostname)
    ? 'is only reachable from this machine'
    : 'does not use HTTPS';
  return warning(
    `${url} ${where}. ${joinNames(hostedClients)} connect from the internet and require HTTPS.`,
    hostedClients,
  );
}

function checkChallenge({ probe: { refusal }, config }: CheckInput): Verdict {
  if (refusal?.status !== 401) return problem('The response is not a 401, so clients do not ask for a credential.');
  const hasHint = refusal.challenge.includes('resource_metadata=');
  if (hasLogin(config))
    return hasHint ? ok('401, with a link to the login.') : problem('401, without a link to the login.');
  return hasHint ? problem('401, with a link to a login that does not exist.') : ok('401, without a login.');
}

function checkSignIn({ config }: CheckInput): Verdict {
  const loginOnlyClients = findClientNames(({ canOnlyLogIn }) => canOnlyLogIn);
  if (hasLogin(config)) return ok('People log in and do not have to copy a credential.');
  const credential = getAccess(config) === 'api_key' ? 'an API key of this workspace' : 'an upstream token';
  return warning(
    `Callers send ${credential}. ${joinNames(loginOnlyClients)} can only log in. Add login to the server to support them.`,
    loginOnlyClients,
  );
}

function checkAnnouncedLogin({ probe: { resourceMetadata }, url, issuer }: CheckInput): Verdict {
  if (!resourceMetadata) return problem('The challenge does not link to resource metadata.');
  const verdict = checkResourceMetadata(resourceMetadata, url);
  const isOurs = toStrings(resourceMetadata.authorization_servers).includes(issuer);
  return verdict.status === 'ok' && !isOurs
    ? problem('The resource metadata does not name the authorization server of Toolhost.')
    : verdict;
}

function checkIssuer({ probe: { issuerMetadata }, issuer }: CheckInput): Verdict {
  if (!issuerMetadata)
    return problem('The authorization server has no metadata at the location that RFC 8414 requires.');
  const verdict = checkServerMetadata(issuerMetadata, issuer);
  return verdict.status === 'ok' ? getWorse(checkRegistrationMetadata(issuerMetadata), verdict) : verdict;
}

const getWorse = (first: Verdict, second: Verdict): Verdict => (first.status === 'ok' ? second : first);

function checkRegistration({ probe: { refusedClients, unlistedClients } }: CheckInput): Verdict {
  if (refusedClients.length === 0 && unlistedClients.length === 0)
    return ok('The redirect URIs of all these clients are accepted.');
  if (refusedClients.length === 0)
    return warning(
      `login.clients does not list the redirect URIs of ${joinNames(unlistedClients)}, so they cannot log in.`,
      [...unlistedClients],
    );
  return problem(
    `Refused: ${refusedClients.map(({ client, reason }) => `${client} (${reason})`).join('; ')}.`,
    refusedClients.map(({ client }) => client),
  );
}

function checkProvider({ config, secrets, callbackUrl, hasLogins }: CheckInput): Verdict {
  const secret = secrets.find(({ name }) => name === configSecrets.clientSecret);
  const origins = config.oauth ? getTokenOrigins(config.oauth) : [];
  if (config.oauth?.client_auth !== 'none' && !origins.every((origin) => secret?.origins.includes(origin)))
    return problem('No client secret is stored for the host of the token endpoint. Set oauth.client_secret.');
  if (hasLogins) return ok('At least one login was completed.');
  return warning(`No one has logged in yet. Register exactly this redirect URI with the provider: ${callbackUrl}`);
}

function checkHandshake({ probe: { responses } }: CheckInput): Verdict {
  const initialized = checkInitialize(getResult(responses.initialize));
  if (initialized.status !== 'ok') return initialized;
  const { supportedVersions } = getResult(responses.discover);
  if (!toStrings(supportedVersions).includes(statelessRevision))
    return problem('The response to server/discover is incomplete.');
  return ok(`Stateful and stateless protocol versions are supported, up to ${statelessRevision}.`);
}

function checkTools({ probe: { responses }, config }: CheckInput): Verdict {
  const expected = createToolList(config).length;
  for (const reply of [responses.tools, responses.statelessTools]) {
    const { tools } = getResult(reply);
    if (!Array.isArray(tools) || tools.length !== expected) return problem('The response to tools/list is incomplete.');
    const verdict = checkToolList(tools.map(asObject));
    if (verdict.status !== 'ok') return verdict;
  }
  return ok('Every tool has a name and an input schema of type object.');
}

function checkCount({ config }: CheckInput): Verdict {
  const emptyMessage = getNoToolsMessage(config);
  const count = getEnabledTools(config).length === 0 ? 0 : createToolList(config).length;
  return checkToolCount(count, emptyMessage.charAt(0).toUpperCase() + emptyMessage.slice(1));
}

function checkNames({ config }: CheckInput): Verdict {
  return checkToolNames(getNames(createToolList(config)), config.slug);
}

function listedTools({ responses }: ConnectionProbe): Fields[] {
  const { tools } = getResult(responses.tools);
  return Array.isArray(tools) ? tools.map(asObject) : [];
}

const getNames = (items: readonly { name: string }[]) => items.map(({ name }) => name);

async function checkSecrets({ config, secrets }: CheckInput): Promise<Verdict> {
  const used = new Set<string>();
  await forEachSecretUse(config, getEnabledTools(config), ({ names }) => {
    for (const name of names) used.add(name);
  });
  const usedNames = [...used];
  const stored = new Set(getNames(secrets));
  const missing = usedNames.filter((name) => !stored.has(name));
  if (missing.length > 0)
    return problem(`Calls will fail until these secrets have a value: ${formatFirstNames(missing)}.`);
  const moved = findMovedSecrets(secrets, config);
  if (moved.length > 0)
    return problem(
      `Set these secrets again, because the tools now call other hosts: ${formatFirstNames(getNames(moved))}.`,
    );
  return ok(usedNames.length === 0 ? 'No secrets are required.' : `${formatFirstNames(usedNames)}.`);
}
