import type { z } from 'zod';
import type { DocumentUse } from './domain/clients/client-documents.ts';
import { builtInQuotas, parseQuotas, type Quotas } from './domain/quotas.ts';
import { parseMasterKeys } from './master-keys.ts';
import { type EgressAllow, parseEgressAllow } from './outbound/egress.ts';
import type { EgressProxy } from './outbound/egress-proxy.ts';
import { hostNameOf } from './outbound/host-name.ts';
import {
  isLoopback,
  issuerProblem,
  parseAllowedHosts,
  parseEgressProxy,
  parseOrigins,
  quotedSetting,
  serviceAddress,
  webUrl,
} from './setting-addresses.ts';
import type { Engine } from './store/db.ts';
import type { PostgresLocation } from './store/engine/postgres.ts';
import { postgresUrlProblems, readAuthorities } from './store/engine/postgres-url.ts';
import { fileVariable, secretNames, type VariableName, variables } from './variables.ts';

type Values = { [N in VariableName]: z.output<(typeof variables)[N]['schema']> };

export type Mode = 'local' | 'production';

export type Config = {
  mode: Mode;
  port: number;
  host: string;
  /** Undefined until it is derived from the port, in local mode without BASE_URL. */
  baseUrl: string | undefined;
  dataDir: string;
  engine: Engine;
  managementSlug: string;
  /** What follows the slug in the host of a server, with its leading dot. */
  serverHosts: string | undefined;
  egressAllow: EgressAllow;
  allowedOrigins: string[];
  /** Further names of this machine, in local mode. */
  allowedHosts: string[];
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
  /** Undefined when traces are off. */
  otlpEndpoint: string | undefined;
  /** How long connections are still taken after the signal to stop. */
  drainNoticeMs: number;
  workers: number;
  demo: boolean;
};

/** Secrets, separate from `Config` so that only the modules that need a secret can read it. */
export type Secrets = {
  /** Undefined in local mode without MASTER_KEY: the key is then created in `dataDir`. */
  masterKeys: Buffer[] | undefined;
  /** Connection settings of PostgreSQL with the password; undefined for SQLite. */
  postgres: PostgresLocation | undefined;
  /** The identity provider; undefined in local mode, which has its own. */
  oidc: { issuer: string; clientId: string; clientSecret: string } | undefined;
  /** The proxy that requests to upstreams and providers go through, with its password. */
  egressProxy: EgressProxy | undefined;
  /** The mail server with its password; undefined where no mail is sent. */
  mail: { url: string; from: string } | undefined;
  /** When undefined, `/metrics` serves only programs on this machine, in local mode. */
  metricsToken: string | undefined;
};

const drainNoticeS = { local: 0, production: 5 };

/** The parsed environment. */
export type Settings = { config: Config; secrets: Secrets };

/** The workspace of local mode and of the operator's commands. */
export const localWorkspace = { id: 'local', name: 'Local' };

/** Reports all problems of the environment at once. */
export class ConfigError extends Error {
  constructor(problems: readonly string[]) {
    super(`The configuration does not allow a start:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
  }
}

/** Reads the environment. `readFile` reads only DATABASE_CA_FILE and the files that hold secrets. @throws ConfigError */
export function readConfig(env: NodeJS.ProcessEnv, readFile: (path: string) => string): Settings {
  const problems: string[] = [];
  const values = readValues({ ...env, ...readSecretFiles(env, readFile) }, problems);
  const baseUrl = readBaseUrl(values, problems);
  const mode = baseUrl === undefined || isLoopback(new URL(baseUrl).hostname) ? 'local' : 'production';
  const masterKeys = values.MASTER_KEY === '' ? undefined : attempt(() => parseMasterKeys(values.MASTER_KEY), problems);
  const authorities = attempt(() => readAuthorities(values.DATABASE_CA_FILE, readFile), problems);
  if (mode === 'production') problems.push(...productionProblems(values, baseUrl as string));
  problems.push(...identityProblems(values, mode));
  const egressAllow = attempt(() => parseEgressAllow(values.EGRESS_ALLOW), problems) ?? [];
  const egressProxy = attempt(() => parseEgressProxy(values.EGRESS_PROXY), problems);
  const allowedOrigins = attempt(() => parseOrigins(values.ALLOWED_ORIGINS), problems) ?? [];
  const allowedHosts = attempt(() => parseAllowedHosts(values.ALLOWED_HOSTS), problems) ?? [];
  const quotas = attempt(() => parseQuotas(values.QUOTAS), problems);
  if (values.DATABASE_URL) problems.push(...postgresUrlProblems(values.DATABASE_URL, values.DATABASE_CA_FILE !== ''));
  problems.push(...observabilityProblems(values), ...mailProblems(values));
  if (problems.length > 0) throw new ConfigError(problems);
  const config: Config = {
    mode,
    port: values.PORT,
    host: values.HOST || (mode === 'local' ? '127.0.0.1' : '0.0.0.0'),
    baseUrl,
    dataDir: values.DATA_DIR,
    engine: values.DATABASE_URL ? 'postgres' : 'sqlite',
    managementSlug: values.MANAGEMENT_SLUG,
    serverHosts: values.SERVER_HOSTS === '' ? undefined : `.${hostNameOf(values.SERVER_HOSTS.slice(2))}`,
    egressAllow,
    allowedOrigins,
    allowedHosts,
    clientDocuments: values.CLIENT_METADATA_DOCUMENTS,
    trustedProxies: values.TRUSTED_PROXIES,
    logLevel: values.LOG_LEVEL,
    callRetentionDays: values.CALL_RETENTION_DAYS,
    auditRetentionDays: values.AUDIT_RETENTION_DAYS,
    quotas: { ...builtInQuotas, ...quotas },
    callsPerSecond: values.CALLS_PER_SECOND,
    concurrentCalls: values.CONCURRENT_CALLS,
    concurrentCallsPerKey: values.CONCURRENT_CALLS_PER_KEY,
    refusalsPerMinute: values.REFUSALS_PER_MINUTE,
    otlpEndpoint: values.OTEL_EXPORTER_OTLP_ENDPOINT || undefined,
    drainNoticeMs: 1000 * (values.DRAIN_NOTICE_SECONDS === '' ? drainNoticeS[mode] : values.DRAIN_NOTICE_SECONDS),
    workers: values.WORKERS,
    demo: values.DEMO === '1',
  };
  const secrets: Secrets = {
    masterKeys,
    postgres: values.DATABASE_URL
      ? { url: values.DATABASE_URL, connections: values.DATABASE_POOL, authorities }
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

/** What commands of the operator need: the settings of the database and the master keys. @throws ConfigError */
export function readStoreConfig(env: NodeJS.ProcessEnv, readFile: (path: string) => string): Settings {
  const { DATA_DIR, DATABASE_URL, DATABASE_URL_FILE, DATABASE_CA_FILE, MASTER_KEY, MASTER_KEY_FILE } = env;
  const own = { DATA_DIR, DATABASE_URL, DATABASE_URL_FILE, DATABASE_CA_FILE, MASTER_KEY, MASTER_KEY_FILE };
  return readConfig(own, readFile);
}

/** The secrets that are set by files. @throws ConfigError for a file that gives none */
function readSecretFiles(env: NodeJS.ProcessEnv, readFile: (path: string) => string): NodeJS.ProcessEnv {
  const secrets: NodeJS.ProcessEnv = {};
  const problems: string[] = [];
  for (const name of secretNames) {
    const variable = fileVariable(name);
    const file = env[variable]?.trim();
    if (!file) continue;
    if (env[name]?.trim()) problems.push(`${name} and ${variable}: set one of the two`);
    const text = attempt(() => readFile(file).trim(), []);
    if (!text)
      problems.push(
        `${variable}: ${text === '' ? 'is empty' : 'cannot be read'}; allowed: the path of a readable file that holds ${name}`,
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
      problems.push(`${name}: found ${quotedSetting(env[name] ?? '')}; allowed: ${meaning}`);
      values[name] = schema.parse(fallback);
    }
  }
  return values as Values;
}

/** The base URL, or undefined when it follows from the port: in local mode without BASE_URL. */
function readBaseUrl(values: Values, problems: string[]): string | undefined {
  const text = values.BASE_URL || (values.PORT === 0 ? '' : `http://127.0.0.1:${values.PORT}`);
  if (text === '') return undefined;
  const address = serviceAddress(text);
  if (address === undefined)
    problems.push(
      `BASE_URL: found ${quotedSetting(text)}; allowed: the address that clients use, such as https://tools.example.com or https://example.com/tools`,
    );
  return address;
}

function productionProblems(values: Values, baseUrl: string): string[] {
  const problems: string[] = [];
  if (!baseUrl.startsWith('https://'))
    problems.push(`BASE_URL: found ${baseUrl}; allowed: https:// (or a loopback address for local mode)`);
  if (values.MASTER_KEY === '') {
    problems.push('MASTER_KEY: required in production mode; make one with: openssl rand -base64 32');
  }
  if (values.ALLOWED_HOSTS !== '')
    problems.push('ALLOWED_HOSTS: is for local mode only; in production BASE_URL is the one address');
  return problems;
}

/** Local mode has an identity provider of its own, so it needs none of the settings, or all. */
function identityProblems(values: Values, mode: Mode): string[] {
  const issuer = values.OIDC_ISSUER;
  if (issuer === '' && mode === 'local') return [];
  const why = mode === 'production' ? 'in production mode' : 'with OIDC_ISSUER';
  const missing = (['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'] as const).filter((name) => !values[name]);
  const problem = issuer === '' ? undefined : issuerProblem(issuer, mode);
  return [...missing.map((name) => `${name}: required ${why}`), ...(problem === undefined ? [] : [problem])];
}

/** Messages that do not repeat the value: a token is a secret, and the URL of a collector may hold one. */
function observabilityProblems({ METRICS_TOKEN: token, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Values): string[] {
  const problems: string[] = [];
  if (token !== '' && !/^[A-Za-z0-9._~+/-]{16,}=*$/.test(token)) {
    problems.push(
      'METRICS_TOKEN: is too short or has characters that a token cannot have; make one with: openssl rand -hex 32',
    );
  }
  if (endpoint !== '' && !webUrl(endpoint, 'with a password')) {
    problems.push('OTEL_EXPORTER_OTLP_ENDPOINT: allowed: http:// or https:// URL, such as http://127.0.0.1:4318');
  }
  return problems;
}

/** Messages that do not repeat the address of the server, which may hold a password. */
function mailProblems({ SMTP_URL: server, MAIL_FROM: from }: Values): string[] {
  if (server === '') return [];
  const isServer = /^smtps?:\/\/[^/\s]+\/?(\?\S*)?$/.test(server);
  return [
    ...(isServer
      ? []
      : ['SMTP_URL: allowed: smtp:// or smtps://, a host and a port, such as smtps://mail.example.com:465']),
    ...(/@/.test(from) ? [] : ['MAIL_FROM: required with SMTP_URL; allowed: an address, such as toolhost@example.com']),
  ];
}

function attempt<T>(read: () => T, problems: string[]): T | undefined {
  try {
    return read();
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}
