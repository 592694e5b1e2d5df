import { documentUses } from '@toolhost/mcp-clients/client-documents';
import { slugPattern } from '@toolhost/tool-config/slug';
import { z } from 'zod';
import { defaultQuotas } from './quotas.ts';
import { isHost } from './setting-addresses.ts';

/** Replaces the wildcard of a host pattern with a slug of the maximum length. */
const buildLongestHost = (pattern: string) => pattern.replace('*', 's'.repeat(63));

/** Declares every environment variable. The reference page is generated from this. */
export const variables = {
  PORT: {
    schema: z.coerce.number().int().min(0).max(65_535),
    fallback: '8080',
    meaning: 'Port to listen on; 0 picks a free port.',
  },
  HOST: {
    schema: z.string().refine((text) => text === '' || isHost(text)),
    fallback: '',
    meaning:
      'Address to listen on, without brackets or port; by default 127.0.0.1 in local mode, 0.0.0.0 in production mode and with LOCAL_MODE=container. Without LOCAL_MODE=container, local mode only listens on loopback addresses.',
  },
  LOCAL_MODE: {
    schema: z.enum(['container', '']),
    fallback: '',
    meaning:
      'Set to container in a container whose port is only published on 127.0.0.1: local mode then listens on every address, accepts the host names 127.0.0.1, localhost, and [::1] with any port, and only a sign-in link signs in. Ignored in production mode.',
  },
  BASE_URL: {
    schema: z.string(),
    fallback: '',
    meaning:
      'Public URL; if it has a path, everything is served below it. A non-loopback host enables production mode.',
  },
  SERVER_HOSTS: {
    schema: z.string().refine((text) => text === '' || (/^\*\.[^*]+$/.test(text) && isHost(buildLongestHost(text)))),
    fallback: '',
    meaning:
      'Wildcard host that gives each server a host name in addition to its path, such as *.tools.example.com; empty for none.',
  },
  DATA_DIR: {
    schema: z.string(),
    fallback: '',
    meaning:
      'Folder of the SQLite file and, in local mode, the master key; by default ./data in a checkout or where that folder exists, otherwise $XDG_DATA_HOME/toolhost or ~/.local/share/toolhost, on macOS ~/Library/Application Support/Toolhost, on Windows %LOCALAPPDATA%\\Toolhost.',
  },
  DATABASE_URL: {
    schema: z.string(),
    fallback: '',
    meaning: 'PostgreSQL URL (postgres://…), to use PostgreSQL instead of the SQLite file.',
  },
  DATABASE_POOL: {
    schema: z.coerce.number().int().min(1).max(1000),
    fallback: '10',
    meaning:
      'Maximum PostgreSQL connections per process for requests; three more are reserved for reports and changes.',
  },
  DATABASE_CA_FILE: {
    schema: z.string(),
    fallback: '',
    meaning: "PEM file with the certificate authority that must have issued PostgreSQL's certificate.",
  },
  MASTER_KEY: {
    schema: z.string(),
    fallback: '',
    meaning:
      'Key that encrypts secrets: 32 bytes in base64 or hex. Of several comma-separated keys, the first encrypts and all decrypt.',
  },
  OIDC_ISSUER: {
    schema: z.string(),
    fallback: '',
    meaning: 'OpenID Connect provider for the dashboard, such as https://login.example.com.',
  },
  OIDC_CLIENT_ID: { schema: z.string(), fallback: '', meaning: 'Client ID at that provider.' },
  OIDC_CLIENT_SECRET: { schema: z.string(), fallback: '', meaning: 'Client secret at that provider.' },
  OIDC_GROUPS_CLAIM: {
    schema: z.string().min(1).max(256),
    fallback: 'groups',
    meaning:
      "Name of the ID token claim with a person's groups, a list of texts; a name with dots or slashes is not a path.",
  },
  IDENTITY_CHECK_SECONDS: {
    schema: z.coerce.number().int().min(5).max(600),
    fallback: '600',
    meaning:
      'Seconds (5 to 600) after which the provider is asked about a person again before their agents may continue; the time after which a removal there takes effect.',
  },
  MANAGEMENT_SLUG: {
    schema: z.string().regex(slugPattern),
    fallback: 'manage',
    meaning: 'Slug of the management server: lowercase letters, digits, and single hyphens between them.',
  },
  EGRESS_ALLOW: {
    schema: z.string(),
    fallback: '',
    meaning:
      'Exceptions to the address guard: host-or-address-or-cidr:port, comma-separated. Also permits plain HTTP there.',
  },
  EGRESS_PROXY: {
    schema: z.string(),
    fallback: '',
    meaning:
      'HTTP proxy (CONNECT) such as http://user:password@proxy.example.com:3128, for all requests to hosts that EGRESS_ALLOW does not exempt by host name or by all of their addresses. The proxy must refuse addresses of your own network. The identity provider, PostgreSQL, and the collector are reached directly.',
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
      'Additional host names of this machine in local mode, such as host.docker.internal:8080, comma-separated; the port defaults to that of BASE_URL.',
  },
  CLIENT_METADATA_DOCUMENTS: {
    schema: z.enum(documentUses),
    fallback: 'on',
    meaning:
      'Handling of OAuth clients whose client ID is the URL of a metadata document: "on" fetches the document, "known" only accepts clients that the service already knows and fetches nothing, "off" requires all clients to register.',
  },
  OPENAI_APPS_CHALLENGE: {
    schema: z.string(),
    fallback: '',
    meaning:
      'Tokens with which OpenAI verifies host names of this service, as host=token, comma-separated. Each is served at /.well-known/openai-apps-challenge of its host only.',
  },
  TRUSTED_PROXIES: {
    schema: z.coerce.number().int().min(0).max(10),
    fallback: '0',
    meaning:
      'Number of reverse proxies in front of the service; that many X-Forwarded-For entries are trusted, counted from the right.',
  },
  LOG_LEVEL: {
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    fallback: 'info',
    meaning: 'Minimum log level: fatal, error, warn, info, debug, trace, or silent.',
  },
  CALL_RETENTION_DAYS: {
    schema: z.coerce.number().int().min(1).max(3650),
    fallback: '30',
    meaning: 'Retention of call records, in days.',
  },
  CALLS_PER_SECOND: {
    schema: z.coerce.number().min(0),
    fallback: '60',
    meaning:
      'Maximum calls per second of one hosted server; a workspace may make five times as many. 0 means no limit.',
  },
  CONCURRENT_CALLS: {
    schema: z.coerce.number().int().min(0),
    fallback: '50',
    meaning:
      'Maximum concurrent calls of one hosted server; a workspace may make five times as many. 0 means no limit.',
  },
  CONCURRENT_CALLS_PER_KEY: {
    schema: z.coerce.number().int().min(0),
    fallback: '20',
    meaning: 'Maximum concurrent calls with one API key; 0 means no limit.',
  },
  REFUSALS_PER_MINUTE: {
    schema: z.coerce.number().int().min(0),
    fallback: '3000',
    meaning:
      'Maximum rejected requests per minute from one IP address; beyond it, requests get status 429. Behind a proxy, set TRUSTED_PROXIES. 0 means no limit.',
  },
  QUOTAS: {
    schema: z.string(),
    fallback: '',
    meaning: `Workspace quotas that differ from the defaults ${Object.entries(defaultQuotas)
      .map(([name, value]) => `${name}=${value}`)
      .join(',')}, in the same form; 0 means no limit.`,
  },
  AUDIT_RETENTION_DAYS: {
    schema: z.coerce.number().int().min(1).max(36_500),
    fallback: '365',
    meaning: 'Retention in days of audit events, revoked or expired keys, ended logins, and empty workspaces.',
  },
  METRICS_TOKEN: {
    schema: z.string(),
    fallback: '',
    meaning:
      'Bearer token for /metrics, at least 16 characters; without it, only programs on this machine have access, in local mode.',
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    schema: z.string(),
    fallback: '',
    meaning: 'OTLP/HTTP collector for traces, such as http://127.0.0.1:4318.',
  },
  DRAIN_DELAY_SECONDS: {
    schema: z.literal('').or(z.coerce.number().min(0).max(20)),
    fallback: '',
    meaning:
      'Seconds that a stopping service still accepts connections, so that load balancers notice, 0 to 20; by default 5, in local mode 0.',
  },
  SMTP_URL: {
    schema: z.string(),
    fallback: '',
    meaning:
      'Mail server for notifications, such as smtps://user:password@mail.example.com or smtp://127.0.0.1:25; without it, no mail is sent.',
  },
  MAIL_FROM: {
    schema: z.string().max(300),
    fallback: '',
    meaning: 'Sender of notification mail, such as Toolhost <toolhost@example.com>.',
  },
  WORKERS: {
    schema: z.coerce.number().int().min(1).max(64),
    fallback: '1',
    meaning: 'Number of worker processes, 1 to 64; one per core is enough. With 1, the service is a single process.',
  },
  DEMO: { schema: z.enum(['0', '1']), fallback: '1', meaning: '0 disables the example server of local mode.' },
} as const;

export type VariableName = keyof typeof variables;

/**
 * Variables with secrets. For each, `NAME_FILE` may name a file that contains the value, as containers and systemd
 * provide secrets.
 */
export const secretVariableNames = [
  'MASTER_KEY',
  'DATABASE_URL',
  'OIDC_CLIENT_SECRET',
  'METRICS_TOKEN',
  'EGRESS_PROXY',
  'SMTP_URL',
] as const satisfies VariableName[];

export const getFileVariableName = (name: VariableName) => `${name}_FILE`;

/** Variables with their defaults and descriptions, for the documentation and the help. */
export const variableDescriptions = Object.entries(variables).map(([name, { fallback, meaning }]) => {
  const isSecret = (secretVariableNames as readonly string[]).includes(name);
  const file = getFileVariableName(name as VariableName);
  return {
    name,
    fallback,
    meaning: isSecret ? `${meaning} ${file} may name a file that contains the value.` : meaning,
  };
});
