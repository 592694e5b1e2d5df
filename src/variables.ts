import { z } from 'zod';
import { documentUses } from './domain/clients/client-documents.ts';
import { builtInQuotas } from './domain/quotas.ts';
import { slugPattern } from './domain/slug.ts';
import { isHost } from './setting-addresses.ts';

/** A host of `*.tools.example.com` with the longest slug. */
const longestHost = (pattern: string) => pattern.replace('*', 's'.repeat(63));

/** Declaration of every environment variable, from which the reference page is generated. */
export const variables = {
  PORT: {
    schema: z.coerce.number().int().min(0).max(65_535),
    fallback: '8080',
    meaning: 'Port to listen on; 0 takes a free one.',
  },
  HOST: {
    schema: z.string().refine((text) => text === '' || isHost(text)),
    fallback: '',
    meaning: 'Address to listen on, without brackets and without a port; 127.0.0.1 in local mode, else 0.0.0.0.',
  },
  BASE_URL: {
    schema: z.string(),
    fallback: '',
    meaning: 'Public address; with a path, everything is below it. Anything but loopback is production mode.',
  },
  SERVER_HOSTS: {
    schema: z.string().refine((text) => text === '' || (/^\*\.[^*]+$/.test(text) && isHost(longestHost(text)))),
    fallback: '',
    meaning: 'A host for each server besides its path, such as *.tools.example.com; empty for none.',
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
  OIDC_ISSUER: {
    schema: z.string(),
    fallback: '',
    meaning: 'OpenID Connect provider for the dashboard, such as https://login.example.com.',
  },
  OIDC_CLIENT_ID: { schema: z.string(), fallback: '', meaning: 'Client id at that provider.' },
  OIDC_CLIENT_SECRET: { schema: z.string(), fallback: '', meaning: 'Client secret at that provider.' },
  MANAGEMENT_SLUG: {
    schema: z.string().regex(slugPattern),
    fallback: 'manage',
    meaning: 'Slug of the management server: lower-case letters, digits and single hyphens between them.',
  },
  EGRESS_ALLOW: {
    schema: z.string(),
    fallback: '',
    meaning:
      'Exceptions to the address guard: host-or-address-or-cidr:port, comma-separated. Permits plain http there.',
  },
  EGRESS_PROXY: {
    schema: z.string(),
    fallback: '',
    meaning:
      'HTTP proxy (CONNECT) for everything that EGRESS_ALLOW does not name, by its host or all of its addresses, such as http://user:password@proxy.example.com:3128. It must refuse addresses of your own network. The identity provider, PostgreSQL and the collector are reached directly.',
  },
  ALLOWED_ORIGINS: {
    schema: z.string(),
    fallback: '',
    meaning: 'Origins of web pages that may call the MCP endpoints, such as https://app.example.com, comma-separated.',
  },
  ALLOWED_HOSTS: {
    schema: z.string(),
    fallback: '',
    meaning:
      'Further names under which this machine is reached in local mode, such as host.docker.internal:8080, comma-separated; without a port that of BASE_URL.',
  },
  CLIENT_METADATA_DOCUMENTS: {
    schema: z.enum(documentUses),
    fallback: 'on',
    meaning:
      'Clients whose client id is the address of a document: on fetches it, known takes only the clients that the service knows and fetches nothing, off makes all register.',
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
  DRAIN_NOTICE_SECONDS: {
    schema: z.literal('').or(z.coerce.number().min(0).max(20)),
    fallback: '',
    meaning:
      'How long a stopping service still takes connections, so that load balancers notice, 0 to 20; 5, in local mode 0.',
  },
  SMTP_URL: {
    schema: z.string(),
    fallback: '',
    meaning:
      'Mail server that people are told by, such as smtps://user:password@mail.example.com or smtp://127.0.0.1:25; without it no mail is sent.',
  },
  MAIL_FROM: {
    schema: z.string().max(300),
    fallback: '',
    meaning: 'Sender of that mail, such as Toolhost <toolhost@example.com>.',
  },
  WORKERS: {
    schema: z.coerce.number().int().min(1).max(64),
    fallback: '1',
    meaning: 'Processes that serve the port, 1 to 64; one per core is enough. With 1 there is no other process.',
  },
  DEMO: { schema: z.enum(['0', '1']), fallback: '1', meaning: '0 leaves the worked example out of local mode.' },
} as const;

export type VariableName = keyof typeof variables;

/** Secrets. Each may stand in the file that `NAME_FILE` names instead, as containers and systemd hand them out. */
export const secretNames = [
  'MASTER_KEY',
  'DATABASE_URL',
  'OIDC_CLIENT_SECRET',
  'METRICS_TOKEN',
  'EGRESS_PROXY',
  'SMTP_URL',
] as const satisfies VariableName[];

export const fileVariable = (name: VariableName) => `${name}_FILE`;

/** Every variable with its default and its meaning, for people. */
export const describedVariables = Object.entries(variables).map(([name, { fallback, meaning }]) => {
  const isSecret = (secretNames as readonly string[]).includes(name);
  const file = fileVariable(name as VariableName);
  return { name, fallback, meaning: isSecret ? `${meaning} ${file} may name a file that holds it instead.` : meaning };
});
