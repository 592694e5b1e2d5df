import { z } from 'zod';
import { builtInQuotas, parseQuotas, type Quotas } from './domain/quotas.ts';
import { slugPattern } from './domain/slug.ts';
import { readMasterKeys } from './master-keys.ts';
import { type EgressAllow, parseEgressAllow } from './outbound/egress.ts';
import type { Engine, PostgresLocation } from './store/database.ts';
import { postgresUrlProblems, readAuthorities } from './store/postgres-url.ts';

/** Every environment variable, declared once. The reference page is generated from this. */
export const variables = {
  PORT: {
    schema: z.coerce.number().int().min(0).max(65_535),
    fallback: '8080',
    meaning: 'Port to listen on; 0 takes a free one.',
  },
  HOST: { schema: z.string(), fallback: '', meaning: 'Address to listen on; 127.0.0.1 in local mode, else 0.0.0.0.' },
  BASE_URL: {
    schema: z.string(),
    fallback: '',
    meaning: 'Public address, without a path. Anything but loopback is production mode.',
  },
  DATA_DIR: {
    schema: z.string().min(1),
    fallback: './data',
    meaning: 'Folder of the SQLite file and, in local mode, of the master key.',
  },
  DATABASE_URL: { schema: z.string(), fallback: '', meaning: 'postgres://… instead of the SQLite file.' },
  DATABASE_POOL: {
    schema: z.coerce.number().int().min(1).max(1000),
    fallback: '10',
    meaning: 'Most connections to PostgreSQL for the requests of each process; three more are for reports and changes.',
  },
  DATABASE_CA_FILE: {
    schema: z.string(),
    fallback: '',
    meaning: 'File with the certificate of the authority (PEM) that the certificate of PostgreSQL must come from.',
  },
  MASTER_KEY: {
    schema: z.string(),
    fallback: '',
    meaning: 'Key that seals secrets: 32 bytes in base64 or hex. Several, comma-separated: the first seals, all open.',
  },
  MASTER_KEY_FILE: { schema: z.string(), fallback: '', meaning: 'File that holds MASTER_KEY.' },
  OIDC_ISSUER: { schema: z.string(), fallback: '', meaning: 'OpenID Connect provider for the dashboard.' },
  OIDC_CLIENT_ID: { schema: z.string(), fallback: '', meaning: 'Client id at that provider.' },
  OIDC_CLIENT_SECRET: { schema: z.string(), fallback: '', meaning: 'Client secret at that provider.' },
  MANAGEMENT_SLUG: {
    schema: z.string().regex(slugPattern),
    fallback: 'manage',
    meaning: 'Slug of the management server.',
  },
  EGRESS_ALLOW: {
    schema: z.string(),
    fallback: '',
    meaning:
      'Exceptions to the address guard: host-or-address-or-cidr:port, comma-separated. Permits plain http there.',
  },
  ALLOWED_ORIGINS: {
    schema: z.string(),
    fallback: '',
    meaning: 'Origins of web pages that may call the MCP endpoints, comma-separated.',
  },
  TRUSTED_PROXIES: {
    schema: z.coerce.number().int().min(0).max(10),
    fallback: '0',
    meaning: 'How many proxies stand in front; their X-Forwarded-For is believed, counted from the right.',
  },
  LOG_LEVEL: {
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    fallback: 'info',
    meaning: 'fatal, error, warn, info, debug, trace or silent.',
  },
  CALL_RETENTION_DAYS: {
    schema: z.coerce.number().int().min(1).max(3650),
    fallback: '30',
    meaning: 'How long call records are kept.',
  },
  CALLS_PER_SECOND: {
    schema: z.coerce.number().min(0),
    fallback: '60',
    meaning: 'Calls a second of one hosted server, a fifth of what its workspace gets; 0 is no limit.',
  },
  CONCURRENT_CALLS: {
    schema: z.coerce.number().int().min(0),
    fallback: '50',
    meaning: 'Calls of one hosted server at once, a fifth of what its workspace gets; 0 is no limit.',
  },
  CONCURRENT_CALLS_PER_KEY: {
    schema: z.coerce.number().int().min(0),
    fallback: '20',
    meaning: 'Calls with one API key at once; 0 is no limit.',
  },
  REFUSALS_PER_MINUTE: {
    schema: z.coerce.number().int().min(0),
    fallback: '3000',
    meaning:
      'Refused requests of one address a minute; above it they are answered with 429. Behind a proxy set TRUSTED_PROXIES. 0 is no limit.',
  },
  QUOTAS: {
    schema: z.string(),
    fallback: '',
    meaning: `What a workspace may have, where it is not ${Object.entries(builtInQuotas)
      .map(([name, value]) => `${name}=${value}`)
      .join(',')}; the same form, 0 is no limit.`,
  },
  AUDIT_RETENTION_DAYS: {
    schema: z.coerce.number().int().min(1).max(36_500),
    fallback: '365',
    meaning: 'How long audit events are kept, and what ended: revoked and expired keys, logins, empty workspaces.',
  },
  METRICS_TOKEN: {
    schema: z.string(),
    fallback: '',
    meaning:
      'Bearer token for /metrics, 16 characters or more; without it only programs of this machine, in local mode.',
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    schema: z.string(),
    fallback: '',
    meaning: 'OTLP/HTTP collector that traces are sent to, such as http://127.0.0.1:4318.',
  },
  WORKERS: {
    schema: z.coerce.number().int().min(1).max(64),
    fallback: '1',
    meaning: 'Processes that serve the port, 1 to 64; one per core is enough. With 1 there is no other process.',
  },
  DEMO: { schema: z.enum(['0', '1']), fallback: '1', meaning: '0 leaves the worked example out of local mode.' },
} as const;

type Name = keyof typeof variables;
type Values = { [N in Name]: z.output<(typeof variables)[N]['schema']> };

export type Mode = 'local' | 'production';

export type Config = {
  mode: Mode;
  port: number;
  host: string;
  /** Undefined until a port of 0 has become a real one. */
  baseUrl: string | undefined;
  dataDir: string;
  engine: Engine;
  managementSlug: string;
  egressAllow: EgressAllow;
  allowedOrigins: string[];
  trustedProxies: number;
  logLevel: string;
  callRetentionDays: number;
  auditRetentionDays: number;
  quotas: Quotas;
  callsPerSecond: number;
  concurrentCalls: number;
  concurrentCallsPerKey: number;
  refusalsPerMinute: number;
  /** Undefined: no traces. */
  otlpEndpoint: string | undefined;
  workers: number;
  demo: boolean;
};

/** What only those parts get that need it: an object of its own, so that no other part can see a key. */
export type Secrets = {
  /** Undefined in local mode without one: it is then made in `dataDir`. */
  masterKeys: Buffer[] | undefined;
  /** Where the database is, with its password; undefined for SQLite. */
  postgres: PostgresLocation | undefined;
  /** The identity provider; undefined in local mode, which brings its own. */
  oidc: { issuer: string; clientId: string; clientSecret: string } | undefined;
  /** Undefined: `/metrics` is only for programs of this machine, in local mode. */
  metricsToken: string | undefined;
};

/** The environment, read. */
export type Settings = { config: Config; secrets: Secrets };

/** The workspace of whoever is at the machine. */
export const localWorkspace = { id: 'local', name: 'Local' };

/** Everything that is wrong with the environment, at once. */
export class ConfigError extends Error {
  constructor(problems: readonly string[]) {
    super(`The configuration does not allow a start:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
  }
}

/** Reads the environment. `readFile` is only asked for MASTER_KEY_FILE and DATABASE_CA_FILE. @throws ConfigError */
export function readConfig(env: NodeJS.ProcessEnv, readFile: (path: string) => string): Settings {
  const problems: string[] = [];
  const values = readValues(env, problems);
  const baseUrl = readBaseUrl(values, problems);
  const mode = baseUrl === undefined || isLoopback(new URL(baseUrl).hostname) ? 'local' : 'production';
  const masterKeys = attempt(
    () => readMasterKeys({ text: values.MASTER_KEY, file: values.MASTER_KEY_FILE }, readFile),
    problems,
  );
  const authorities = attempt(() => readAuthorities(values.DATABASE_CA_FILE, readFile), problems);
  if (mode === 'production') problems.push(...productionProblems(values, baseUrl as string, masterKeys));
  const egressAllow = attempt(() => parseEgressAllow(values.EGRESS_ALLOW), problems) ?? [];
  const quotas = attempt(() => parseQuotas(values.QUOTAS), problems);
  if (values.DATABASE_URL) problems.push(...postgresUrlProblems(values.DATABASE_URL, values.DATABASE_CA_FILE !== ''));
  problems.push(...sightProblems(values));
  if (problems.length > 0) throw new ConfigError(problems);
  const config: Config = {
    mode,
    port: values.PORT,
    host: values.HOST || (mode === 'local' ? '127.0.0.1' : '0.0.0.0'),
    baseUrl,
    dataDir: values.DATA_DIR,
    engine: values.DATABASE_URL ? 'postgres' : 'sqlite',
    managementSlug: values.MANAGEMENT_SLUG,
    egressAllow,
    allowedOrigins: list(values.ALLOWED_ORIGINS),
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
    metricsToken: values.METRICS_TOKEN || undefined,
  };
  return { config, secrets };
}

function readValues(env: NodeJS.ProcessEnv, problems: string[]): Values {
  const values: Partial<Record<Name, unknown>> = {};
  for (const name of Object.keys(variables) as Name[]) {
    const { schema, fallback, meaning } = variables[name];
    const result = schema.safeParse(env[name]?.trim() || fallback);
    if (result.success) values[name] = result.data;
    else {
      problems.push(`${name}: found ${JSON.stringify(env[name])}; allowed: ${meaning}`);
      values[name] = schema.parse(fallback);
    }
  }
  return values as Values;
}

/** In local mode without BASE_URL it follows from the port. */
function readBaseUrl(values: Values, problems: string[]): string | undefined {
  const text = values.BASE_URL || (values.PORT === 0 ? '' : `http://127.0.0.1:${values.PORT}`);
  if (text === '') return undefined;
  if (
    !URL.canParse(text) ||
    !/^https?:$/.test(new URL(text).protocol) ||
    new URL(text).origin !== text.replace(/\/$/, '')
  ) {
    problems.push('BASE_URL: allowed: https://host, without a path');
    return undefined;
  }
  return new URL(text).origin;
}

export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

function productionProblems(values: Values, baseUrl: string, masterKeys: Buffer[] | undefined): string[] {
  const problems: string[] = [];
  if (!baseUrl.startsWith('https://'))
    problems.push(`BASE_URL: found ${baseUrl}; allowed: https:// (or a loopback address for local mode)`);
  if (!masterKeys && !values.MASTER_KEY && !values.MASTER_KEY_FILE) {
    problems.push('MASTER_KEY: required in production mode; make one with: openssl rand -base64 32');
  }
  for (const name of ['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'] as const) {
    if (!values[name]) problems.push(`${name}: required in production mode`);
  }
  return problems;
}

/** Without what was found: a token is a secret, and the URL of a collector may hold one. */
function sightProblems({ METRICS_TOKEN: token, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Values): string[] {
  const problems: string[] = [];
  if (token !== '' && !/^[A-Za-z0-9._~+/-]{16,}=*$/.test(token)) {
    problems.push(
      'METRICS_TOKEN: is too short or has characters that a token cannot have; make one with: openssl rand -hex 32',
    );
  }
  if (endpoint !== '' && !(URL.canParse(endpoint) && /^https?:$/.test(new URL(endpoint).protocol))) {
    problems.push('OTEL_EXPORTER_OTLP_ENDPOINT: allowed: http:// or https:// URL, such as http://127.0.0.1:4318');
  }
  return problems;
}

function attempt<T>(read: () => T, problems: string[]): T | undefined {
  try {
    return read();
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

function list(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}
