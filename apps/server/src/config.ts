import type { DocumentUse } from '@toolhost/mcp-clients/client-documents';
import { type EgressAllow, parseEgressAllow } from '@toolhost/safe-http/egress';
import type { EgressProxy } from '@toolhost/safe-http/egress-proxy';
import { toHostName } from '@toolhost/safe-http/host-name';
import { z } from 'zod';
import { readAllowedAddresses } from './allowed-addresses.ts';
import { getDefaultDataDir } from './data-folder.ts';
import { parseMasterKeys } from './master-keys.ts';
import { defaultQuotas, parseQuotas, type Quotas } from './quotas.ts';
import {
  checkIssuer,
  isLoopback,
  parseAllowedHosts,
  parseAppsChallenges,
  parseEgressProxy,
  parseOrigins,
  parseServiceUrl,
  parseWebUrl,
  quoteSetting,
} from './setting-addresses.ts';
import type { Engine } from './store/db.ts';
import type { PostgresLocation } from './store/engine/postgres.ts';
import { findPostgresUrlProblems, readAuthorities } from './store/engine/postgres-url.ts';
import { getFileVariableName, secretVariableNames, type VariableName, variables } from './variables.ts';

type Values = { [N in VariableName]: z.output<(typeof variables)[N]['schema']> };

export type Mode = 'local' | 'production';

export type Config = {
  mode: Mode;
  port: number;
  host: string;
  /** True in local mode with LOCAL_MODE=container: the port is published by a container engine, which decides who reaches it. */
  isInContainer: boolean;
  /** Undefined until it is derived from the port, in local mode without BASE_URL. */
  baseUrl: string | undefined;
  dataDir: string;
  engine: Engine;
  managementSlug: string;
  /** Name of the identity provider's claim with a person's groups. */
  groupsClaim: string;
  /** Maximum time since the identity provider was asked about a person whose agents make calls. */
  identityCheckMs: number;
  /** Domain suffix after the slug in a server's host name, with its leading dot. */
  serverHosts: string | undefined;
  egressAllow: EgressAllow;
  allowedOrigins: string[];
  /** Additional host names of this machine, in local mode. */
  allowedHosts: string[];
  /** Tokens with which OpenAI verifies hosts, by host with or without its port. */
  appsChallenges: ReadonlyMap<string, string>;
  clientDocuments: DocumentUse;
  trustedProxies: number;
  logLevel: string;
  callRetentionDays: number;
  auditRetentionDays: number;
  quotas: Quotas;
  callsPerSecond: number;
  concurrentCalls: number;
  concurrentCallsPerKey: number;
  refusalsPerMinute: number;
  /** Undefined if tracing is disabled. */
  otlpEndpoint: string | undefined;
  /** Time during which connections are still accepted after the stop signal. */
  drainDelayMs: number;
  workers: number;
  demo: boolean;
};

/** Secrets, separate from `Config` so that only modules that need a secret can read it. */
export type Secrets = {
  /** Undefined in local mode without MASTER_KEY, where the key is created in `dataDir`. */
  masterKeys: Buffer[] | undefined;
  /** PostgreSQL connection settings including the password; undefined for SQLite. */
  postgres: PostgresLocation | undefined;
  /** Identity provider; undefined in local mode with the built-in provider. */
  oidc: { issuer: string; clientId: string; clientSecret: string } | undefined;
  /** Proxy for requests to upstreams and providers, including its password. */
  egressProxy: EgressProxy | undefined;
  /** Mail server including its password; undefined if mail is disabled. */
  mail: { url: string; from: string } | undefined;
  /** If undefined, `/metrics` only serves programs on this machine, and only in local mode. */
  metricsToken: string | undefined;
};

const defaultDrainDelayS = { local: 0, production: 5 };

/** Parsed environment. */
export type Settings = { config: Config; secrets: Secrets };

/** Workspace of local mode and of operator commands. */
export const localWorkspace = { id: 'local', name: 'Local' };

/** Reports all problems of the environment at once. */
export class ConfigError extends Error {
  constructor(problems: readonly string[]) {
    super(`Invalid configuration:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
  }
}

/**
 * Parses the environment. `readFile` only reads DATABASE_CA_FILE and the files that contain secrets.
 * @throws ConfigError
 */
export function readConfig(env: NodeJS.ProcessEnv, readFile: (path: string) => string): Settings {
  const problems: string[] = [];
  const values = readValues({ ...env, ...readSecretFiles(env, readFile) }, problems);
  const baseUrl = readBaseUrl(values, problems);
  const mode = baseUrl === undefined || isLoopback(new URL(baseUrl).hostname) ? 'local' : 'production';
  const masterKeys =
    values.MASTER_KEY === '' ? undefined : tryOrReport(() => parseMasterKeys(values.MASTER_KEY), problems);
  const certificateAuthorities = tryOrReport(() => readAuthorities(values.DATABASE_CA_FILE, readFile), problems);
  problems.push(...findModeProblems(values, mode, baseUrl));
  const egressAllow = readEgressAllow(values, mode, readFile, problems);
  const egressProxy = tryOrReport(() => parseEgressProxy(values.EGRESS_PROXY), problems);
  const allowedOrigins = tryOrReport(() => parseOrigins(values.ALLOWED_ORIGINS), problems) ?? [];
  const allowedHosts = tryOrReport(() => parseAllowedHosts(values.ALLOWED_HOSTS), problems) ?? [];
  const appsChallenges = tryOrReport(() => parseAppsChallenges(values.OPENAI_APPS_CHALLENGE), problems) ?? new Map();
  const quotas = tryOrReport(() => parseQuotas(values.QUOTAS), problems);
  if (values.DATABASE_URL)
    problems.push(...findPostgresUrlProblems(values.DATABASE_URL, values.DATABASE_CA_FILE !== ''));
  problems.push(...findObservabilityProblems(values), ...findMailProblems(values));
  if (problems.length > 0) throw new ConfigError(problems);
  const config: Config = {
    mode,
    port: values.PORT,
    host: values.HOST || (mode === 'local' && values.LOCAL_MODE === '' ? '127.0.0.1' : '0.0.0.0'),
    isInContainer: mode === 'local' && values.LOCAL_MODE === 'container',
    baseUrl,
    dataDir: getDataDir(values),
    engine: values.DATABASE_URL ? 'postgres' : 'sqlite',
    managementSlug: values.MANAGEMENT_SLUG,
    groupsClaim: values.OIDC_GROUPS_CLAIM,
    identityCheckMs: 1000 * values.IDENTITY_CHECK_SECONDS,
    serverHosts: values.SERVER_HOSTS === '' ? undefined : `.${toHostName(values.SERVER_HOSTS.slice(2))}`,
    egressAllow,
    allowedOrigins,
    allowedHosts,
    appsChallenges,
    clientDocuments: values.CLIENT_METADATA_DOCUMENTS,
    trustedProxies: values.TRUSTED_PROXIES,
    logLevel: values.LOG_LEVEL,
    callRetentionDays: values.CALL_RETENTION_DAYS,
    auditRetentionDays: values.AUDIT_RETENTION_DAYS,
    quotas: { ...defaultQuotas, ...quotas },
    callsPerSecond: values.CALLS_PER_SECOND,
    concurrentCalls: values.CONCURRENT_CALLS,
    concurrentCallsPerKey: values.CONCURRENT_CALLS_PER_KEY,
    refusalsPerMinute: values.REFUSALS_PER_MINUTE,
    otlpEndpoint: values.OTEL_EXPORTER_OTLP_ENDPOINT || undefined,
    drainDelayMs: 1000 * (values.DRAIN_DELAY_SECONDS === '' ? defaultDrainDelayS[mode] : values.DRAIN_DELAY_SECONDS),
    workers: values.WORKERS,
    demo: values.DEMO === '1',
  };
  const secrets: Secrets = {
    masterKeys,
    postgres: values.DATABASE_URL
      ? { url: values.DATABASE_URL, maxConnections: values.DATABASE_POOL, authorities: certificateAuthorities }
      : undefined,
    oidc: values.OIDC_ISSUER
      ? { issuer: values.OIDC_ISSUER, clientId: values.OIDC_CLIENT_ID, clientSecret: values.OIDC_CLIENT_SECRET }
      : undefined,
    egressProxy,
    mail: values.SMTP_URL ? { url: values.SMTP_URL, from: values.MAIL_FROM } : undefined,
    metricsToken: values.METRICS_TOKEN || undefined,
  };
  return { config, secrets };
}

/** Parses the settings of operator commands: the database and the master keys. @throws ConfigError */
export function readStoreConfig(env: NodeJS.ProcessEnv, readFile: (path: string) => string): Settings {
  const { DATA_DIR, DATABASE_URL, DATABASE_URL_FILE, DATABASE_CA_FILE, MASTER_KEY, MASTER_KEY_FILE } = env;
  const storeEnvironment = { DATA_DIR, DATABASE_URL, DATABASE_URL_FILE, DATABASE_CA_FILE, MASTER_KEY, MASTER_KEY_FILE };
  return readConfig(storeEnvironment, readFile);
}

/** Reads the secrets that are set by files. @throws ConfigError for an empty or unreadable file */
function readSecretFiles(env: NodeJS.ProcessEnv, readFile: (path: string) => string): NodeJS.ProcessEnv {
  const secrets: NodeJS.ProcessEnv = {};
  const problems: string[] = [];
  for (const name of secretVariableNames) {
    const variable = getFileVariableName(name);
    const path = env[variable]?.trim();
    if (!path) continue;
    if (env[name]?.trim()) problems.push(`${name} and ${variable}: set only one of the two`);
    // The error of the file system is dropped, because the problem below describes it.
    const text = tryOrReport(() => readFile(path).trim(), []);
    if (!text)
      problems.push(
        `${variable}: ${text === '' ? 'is empty' : 'cannot be read'}; allowed: the path of a readable file that contains ${name}`,
      );
    secrets[name] = text;
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return secrets;
}

function readValues(env: NodeJS.ProcessEnv, problems: string[]): Values {
  const values: Partial<Record<VariableName, unknown>> = {};
  for (const name of Object.keys(variables) as VariableName[]) {
    const { schema, fallback, meaning } = variables[name];
    const result = schema.safeParse(env[name]?.trim() || fallback);
    if (result.success) values[name] = result.data;
    else {
      problems.push(`${name}: found ${quoteSetting(env[name] ?? '')}; allowed: ${formatAllowed(schema)}${meaning}`);
      values[name] = schema.parse(fallback);
    }
  }
  return values as Values;
}

/** Returns the start of a sentence that names the values of a schema with a range or a list; empty for other schemas. */
function formatAllowed(schema: z.ZodType): string {
  const { anyOf = [], ...own } = z.toJSONSchema(schema);
  const { type, minimum, maximum = Number.MAX_SAFE_INTEGER, enum: choices } = anyOf.find(isRange) ?? own;
  if (choices) return `${choices.map((choice) => choice || 'nothing').join(', ')}. `;
  if (minimum === undefined) return '';
  const end = maximum === Number.MAX_SAFE_INTEGER ? '' : ` to ${maximum}`;
  return `a ${type === 'integer' ? 'whole ' : ''}number from ${minimum}${end}. `;
}

const isRange = ({ minimum }: { minimum?: number | undefined }) => minimum !== undefined;

function getDataDir({ DATA_DIR: dataDir }: Values): string {
  return dataDir || getDefaultDataDir();
}

/** Parses the operator's exceptions for outbound requests: EGRESS_ALLOW and, in local mode, the stored addresses. */
function readEgressAllow(
  values: Values,
  mode: Mode,
  readFile: (path: string) => string,
  problems: string[],
): EgressAllow {
  const readStored = () => {
    const { entries, file } = readAllowedAddresses(getDataDir(values), readFile);
    return parseEgressAllow(entries, file);
  };
  const sources = [() => parseEgressAllow(values.EGRESS_ALLOW), ...(mode === 'local' ? [readStored] : [])];
  return sources.flatMap((read) => tryOrReport(read, problems) ?? []);
}

/** Returns the base URL; undefined if it is derived from the port later, in local mode without BASE_URL. */
function readBaseUrl(values: Values, problems: string[]): string | undefined {
  const text = values.BASE_URL || (values.PORT === 0 ? '' : `http://127.0.0.1:${values.PORT}`);
  if (text === '') return undefined;
  const baseUrl = parseServiceUrl(text);
  if (baseUrl === undefined)
    problems.push(
      `BASE_URL: found ${quoteSetting(text)}; allowed: the URL that clients use, such as https://tools.example.com or https://example.com/tools, or nothing for local mode`,
    );
  return baseUrl;
}

/** Finds what the mode requires or excludes. Production mode has a base URL. */
function findModeProblems(values: Values, mode: Mode, baseUrl: string | undefined): string[] {
  const problems = mode === 'production' ? findProductionProblems(values, baseUrl ?? '') : findExposureProblems(values);
  return [...problems, ...findIdentityProblems(values, mode)];
}

function findProductionProblems(values: Values, baseUrl: string): string[] {
  const problems: string[] = [];
  if (!baseUrl.startsWith('https://'))
    problems.push(`BASE_URL: found ${baseUrl}; allowed: https:// (or a loopback address for local mode)`);
  if (values.MASTER_KEY === '')
    problems.push('MASTER_KEY: required in production mode; generate one with: openssl rand -base64 32');
  if (values.ALLOWED_HOSTS !== '')
    problems.push('ALLOWED_HOSTS: only allowed in local mode; in production mode, BASE_URL is the only URL');
  return problems;
}

/** Checks that only this machine reaches local mode, in which anyone who reaches it can sign in. */
function findExposureProblems({ HOST: host, LOCAL_MODE: localMode }: Values): string[] {
  if (localMode === 'container' || host === '' || host === '::1' || isLoopback(host)) return [];
  return [
    `HOST: found ${quoteSetting(host)}; allowed in local mode: 127.0.0.1, localhost, or ::1, because anyone who reaches it can sign in. To serve other machines, set BASE_URL to a public https:// URL. In a container, set LOCAL_MODE=container and publish the port on 127.0.0.1 only`,
  ];
}

/**
 * Checks the identity provider settings. Local mode has a built-in provider, so it needs either none of them or all.
 */
function findIdentityProblems(values: Values, mode: Mode): string[] {
  const issuer = values.OIDC_ISSUER;
  if (issuer === '' && mode === 'local') return [];
  const context = mode === 'production' ? 'in production mode' : 'with OIDC_ISSUER';
  const missingNames = (['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'] as const).filter(
    (name) => !values[name],
  );
  const problem = issuer === '' ? undefined : checkIssuer(issuer, mode);
  return [...missingNames.map((name) => `${name}: required ${context}`), ...(problem === undefined ? [] : [problem])];
}

/**
 * Checks the observability settings. Messages do not repeat values: a token is secret, and a collector URL may contain
 * one.
 */
function findObservabilityProblems({ METRICS_TOKEN: token, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Values): string[] {
  const problems: string[] = [];
  // The syntax of a bearer token (RFC 6750, 2.1), with a minimum length.
  if (token !== '' && !/^[A-Za-z0-9._~+/-]{16,}=*$/.test(token))
    problems.push('METRICS_TOKEN: is too short or has invalid characters; generate one with: openssl rand -hex 32');
  if (endpoint !== '' && !parseWebUrl(endpoint, { allowsCredentials: true }))
    problems.push('OTEL_EXPORTER_OTLP_ENDPOINT: allowed: an http:// or https:// URL, such as http://127.0.0.1:4318');
  return problems;
}

/** Checks the mail settings. Messages do not repeat the server URL, which may contain a password. */
function findMailProblems({ SMTP_URL: server, MAIL_FROM: from }: Values): string[] {
  if (server === '') return [];
  const isValidServer = /^smtps?:\/\/[^/\s]+\/?(\?\S*)?$/.test(server);
  return [
    ...(isValidServer
      ? []
      : ['SMTP_URL: allowed: an smtp:// or smtps:// URL with a host and a port, such as smtps://mail.example.com:465']),
    ...(/@/.test(from) ? [] : ['MAIL_FROM: required with SMTP_URL; allowed: an address, such as toolhost@example.com']),
  ];
}

function tryOrReport<T>(read: () => T, problems: string[]): T | undefined {
  try {
    return read();
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}
