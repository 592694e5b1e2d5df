import { accessOf } from '../../domain/config/access.ts';
import { configSecrets, type ServerConfig } from '../../domain/config/server-config.ts';
import { originsOf, secretUsesOfServer, secretUsesOfTool } from '../../domain/config/server-wide.ts';
import { enabledTools } from '../../domain/config/tool.ts';
import { estimatedTokens, noTools } from '../../domain/config/warnings.ts';
import { clientsWithStrictNames, knownClients, toolNameOfModels } from '../../domain/known-clients.ts';
import { modernRevision, revisions } from '../../domain/mcp.ts';
import { nextTurn } from '../../domain/next-turn.ts';
import type { SecretInfo } from '../../store/servers/secrets.ts';
import { firstNames, movedSecrets } from '../servers/moved-secrets.ts';
import type { ConnectionProbe, ProbeJson } from './connection-probe.ts';

export type Check = {
  id: string;
  title: string;
  status: 'ok' | 'warning' | 'problem';
  detail: string;
  /** Names of the affected clients. */
  clients: string[];
};

/** Input of the checks. */
export type Examined = {
  config: ServerConfig;
  probe: ConnectionProbe;
  address: string;
  callbackUrl: string;
  secrets: readonly SecretInfo[];
  /** Whether anyone has ever finished a login. */
  hasLogins: boolean;
};

const everyone = knownClients.map((client) => client.name);
const maxTokens = 10_000;

type Verdict = Pick<Check, 'status' | 'detail'> & { clients?: string[] };
const ok = (detail: string, clients?: string[]): Verdict => ({ status: 'ok', detail, ...(clients && { clients }) });
const warning = (detail: string, clients?: string[]): Verdict => ({ ...ok(detail, clients), status: 'warning' });
const problem = (detail: string, clients?: string[]): Verdict => ({ ...ok(detail, clients), status: 'problem' });

type Rule = { id: string; title: string; onlyLogins?: true; judge: (examined: Examined) => Verdict };

/** Checks of what clients need, in the order in which clients would fail. */
const rules: readonly Rule[] = [
  { id: 'address', title: 'The address can be reached', judge: judgeAddress },
  { id: 'challenge', title: 'A request without a credential is refused with a challenge', judge: judgeChallenge },
  { id: 'sign_in', title: 'Clients can present the credential', judge: judgeSignIn },
  { id: 'resource_metadata', title: 'The login is announced', onlyLogins: true, judge: judgeResource },
  { id: 'server_metadata', title: 'The login is described', onlyLogins: true, judge: judgeIssuer },
  { id: 'registration', title: 'Clients can register', onlyLogins: true, judge: judgeRegistration },
  { id: 'provider', title: 'The provider takes people back', onlyLogins: true, judge: judgeProvider },
  { id: 'handshake', title: 'The server introduces itself', judge: judgeHandshake },
  { id: 'tool_list', title: 'The list of tools is well-formed', judge: judgeToolList },
  { id: 'tool_count', title: 'The number of tools is within limits', judge: judgeToolCount },
  { id: 'tool_names', title: 'The names of the tools are usable', judge: judgeToolNames },
  { id: 'token_estimate', title: 'The list of tools is affordable', judge: judgeTokens },
  { id: 'secrets', title: 'Every secret has a value', judge: judgeSecrets },
];

export async function connectionChecks(examined: Examined): Promise<Check[]> {
  const checks: Check[] = [];
  for (const { id, title, onlyLogins, judge } of rules) {
    if (onlyLogins && !examined.config.oauth) continue;
    // Some rules walk through the whole configuration.
    await nextTurn();
    checks.push({ id, title, clients: everyone, ...judge(examined) });
  }
  return checks;
}

function judgeAddress({ address }: Examined): Verdict {
  const hosted = knownClients.filter((client) => client.isHosted).map((client) => client.name);
  const { protocol, hostname } = new URL(address);
  if (protocol === 'https:') return ok(`${address} is https.`, everyone);
  const where = /^(localhost|127\.|\[::1\])/.test(hostname) ? 'can only be reached on this machine' : 'is not https';
  return warning(`${address} ${where}. ${hosted.join(' and ')} connect from the internet, only over https.`, hosted);
}

function judgeChallenge({ probe: { refusal }, config }: Examined): Verdict {
  if (refusal?.status !== 401) return problem('It is not answered with 401, so no client asks for a credential.');
  const hasHint = refusal.challenge.includes('resource_metadata=');
  if (config.oauth)
    return hasHint ? ok('401, with a link to the login.') : problem('401, without a link to the login.');
  return hasHint ? problem('401, with a link to a login that does not exist.') : ok('401, without a login.');
}

function judgeSignIn({ config }: Examined): Verdict {
  const limited = knownClients.filter((client) => client.onlyLogsIn).map((client) => client.name);
  if (config.oauth) return ok('People log in; nothing has to be copied.');
  const what = accessOf(config) === 'api_key' ? 'an API key of this workspace' : 'a token of the upstream';
  return warning(`Callers send ${what}. ${limited.join(' and ')} can only log in: give the server oauth.`, limited);
}

function judgeResource({ probe: { resource }, address }: Examined): Verdict {
  if (!resource) return problem('The challenge leads to no metadata of the resource.');
  if (resource.resource !== address) return problem(`"resource" is not ${address}; clients compare it as it stands.`);
  const servers = resource.authorization_servers;
  if (!Array.isArray(servers) || !servers.includes(address))
    return problem('It names no authorization server of ours.');
  return ok('The resource is exactly the address that people configure.');
}

function judgeIssuer({ probe: { issuer }, address }: Examined): Verdict {
  if (!issuer) return problem('The authorization server has no metadata where RFC 8414 puts it.');
  if (issuer.issuer !== address) return problem(`"issuer" is not ${address}; clients compare it as it stands.`);
  const endpoints = ['authorization_endpoint', 'token_endpoint', 'registration_endpoint'];
  const missing = endpoints.filter((name) => typeof issuer[name] !== 'string');
  if (missing.length > 0) return problem(`${missing.join(', ')} is missing.`);
  const methods = issuer.code_challenge_methods_supported;
  if (!Array.isArray(methods) || !methods.includes('S256')) return problem('PKCE with S256 is not announced.');
  return ok('The issuer is the address, and every endpoint is there.');
}

function judgeRegistration({ probe: { refusedClients } }: Examined): Verdict {
  if (refusedClients.length === 0) return ok('The redirect URIs of all these clients are taken.');
  return problem(
    `Refused: ${refusedClients.map(({ client, reason }) => `${client} (${reason})`).join('; ')}.`,
    refusedClients.map(({ client }) => client),
  );
}

function judgeProvider({ config, secrets, callbackUrl, hasLogins }: Examined): Verdict {
  const secret = secrets.find(({ name }) => name === configSecrets.clientSecret);
  const origin = new URL(config.oauth?.token_url ?? callbackUrl).origin;
  if (!secret?.origins.includes(origin))
    return problem('There is no client secret for the host of token_url; send it.');
  if (hasLogins) return ok('Somebody has logged in.');
  return warning(`Nobody has logged in yet. The provider must know exactly this redirect URI: ${callbackUrl}`);
}

function resultOf(reply: ProbeJson): ProbeJson {
  return typeof reply.result === 'object' && reply.result !== null ? (reply.result as ProbeJson) : {};
}

function judgeHandshake({ probe: { answers } }: Examined): Verdict {
  const { protocolVersion, capabilities, serverInfo } = resultOf(answers.initialize);
  const isKnown = revisions.some((revision) => revision === protocolVersion);
  if (!isKnown || !(capabilities as ProbeJson | undefined)?.tools || !(serverInfo as ProbeJson | undefined)?.name)
    return problem('The answer to initialize is not complete.');
  const { supportedVersions } = resultOf(answers.discover);
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(modernRevision))
    return problem('The answer to server/discover is not complete.');
  return ok(`Both eras of the protocol are answered, up to ${modernRevision}.`);
}

function judgeToolList({ probe: { answers }, config }: Examined): Verdict {
  const expected = enabledTools(config).length;
  for (const reply of [answers.tools, answers.modernTools]) {
    const { tools } = resultOf(reply);
    if (!Array.isArray(tools) || tools.length !== expected) return problem('tools/list is not complete.');
    const broken = (tools as ProbeJson[]).find(
      (tool) => typeof tool.name !== 'string' || (tool.inputSchema as ProbeJson | undefined)?.type !== 'object',
    );
    if (broken) return problem(`The tool ${String(broken.name)} has no name or no input schema of type object.`);
  }
  return ok('Every tool has a name and an input schema of type object.');
}

function judgeToolCount({ config }: Examined): Verdict {
  const count = enabledTools(config).length;
  const tools = count === 1 ? '1 tool' : `${count} tools`;
  if (count === 0) return warning(`${sentence(noTools(config))}.`);
  const limited = knownClients.filter((client) => client.maxTools !== undefined);
  const exceeded = limited.filter((client) => count > (client.maxTools ?? 0));
  const limits = limited.map(({ name, maxTools }) => `${name} ${maxTools}`).join(', ');
  if (exceeded.length === 0) return ok(`${tools}; limits, over all servers of a client: ${limits}.`, namesOf(limited));
  return warning(`${tools}; limits, over all servers of a client: ${limits}. Split the server.`, namesOf(exceeded));
}

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const namesOf = (clients: readonly { name: string }[]) => clients.map((client) => client.name);

function judgeToolNames({ config }: Examined): Verdict {
  const names = enabledTools(config).map((tool) => tool.name);
  const strange = names.filter((name) => !toolNameOfModels.test(name));
  const tooLong = knownClients.flatMap(({ name: client, toolName }) =>
    names
      .filter((name) => toolName.shown(config.slug, name).length > toolName.max)
      .map((name) => ({ client, name, max: toolName.max })),
  );
  const remarks = [
    ...(strange.length > 0 ? [`Models take only letters, digits, _ and -: ${firstNames(strange)}.`] : []),
    ...[...Map.groupBy(tooLong, ({ client }) => client)].map(
      ([client, found]) =>
        `${client} takes ${found[0]?.max} characters together with the name of the server: ${firstNames(namesOf(found))}.`,
    ),
  ];
  if (remarks.length === 0) return ok('Short enough for every client, also with the slug before them.');
  const concerned = new Set([...(strange.length > 0 ? clientsWithStrictNames : []), ...tooLong.map((t) => t.client)]);
  return warning(
    remarks.join(' '),
    everyone.filter((name) => concerned.has(name)),
  );
}

function judgeTokens({ config }: Examined): Verdict {
  const tokens = estimatedTokens(config);
  const cost = `About ${tokens} tokens in every conversation`;
  return tokens <= maxTokens ? ok(`${cost}.`) : warning(`${cost}; shorten descriptions or split the server.`);
}

function judgeSecrets({ config, secrets }: Examined): Verdict {
  const uses = [
    ...secretUsesOfServer(config),
    ...enabledTools(config).flatMap((tool) => secretUsesOfTool(tool, config)),
  ];
  const wanted = [...new Set(uses.flatMap(({ names }) => names))];
  const stored = new Set(namesOf(secrets));
  const missing = wanted.filter((name) => !stored.has(name));
  if (missing.length > 0) return problem(`Calls will fail without a value for ${firstNames(missing)}.`);
  const moved = movedSecrets(secrets, originsOf(config));
  if (moved.length > 0)
    return problem(`Set again, for hosts that the tools call by now: ${firstNames(namesOf(moved))}.`);
  return ok(wanted.length === 0 ? 'None is needed.' : `${firstNames(wanted)}.`);
}
