import type { PoolConfig } from 'pg';

/**
 * Supported values of `sslmode`. `disable` and `no-verify` do not verify the server; all others verify its certificate
 * and name.
 */
const sslModes = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'];

/** Default time that a request waits for a connection, in seconds, unless the URL sets it. */
const defaultConnectSeconds = 2;

const millisecondBounds = { min: 1000, max: 60_000 };
/** Time limits that the URL may set, with the name and unit that libpq or PostgreSQL uses. */
const timeouts = {
  connect_timeout: { min: 1, max: 300, description: 'the time in seconds that a request waits for a connection' },
  statement_timeout: { ...millisecondBounds, description: 'the time in milliseconds that a statement may take' },
  lock_timeout: {
    ...millisecondBounds,
    description: 'the time in milliseconds that a statement in a transaction waits for a lock',
  },
  idle_in_transaction_session_timeout: {
    ...millisecondBounds,
    description: 'the time in milliseconds that this program may be idle within a transaction',
  },
};

/** Parameters of the URL that address this program and not the server. */
const clientParameters = new RegExp(`(?<=[?&])(${['sslmode', ...Object.keys(timeouts)].join('|')})=[^&]*&?`, 'g');

/**
 * Returns pg's options for a URL. Without `sslmode`, the connection is unencrypted, unless `authorities` (PEM) are
 * given to verify the server's certificate with.
 */
export function toPostgresConfig(url: string, authorities: string | undefined): PoolConfig {
  // pg would print warnings about some TLS modes, let the URL's settings override ours, and send time limits as startup
  // parameters, which poolers reject.
  const connectionString = url.replaceAll(clientParameters, '');
  const connectionTimeoutMillis = (parseTimeout(url, 'connect_timeout') ?? defaultConnectSeconds) * 1000;
  return { connectionString, connectionTimeoutMillis, ...toTlsConfig(parseSslMode(url), authorities) };
}

/** Returns a time limit that the URL sets, in the unit of its name; undefined if the URL does not set it. */
export function parseTimeout(url: string, name: keyof typeof timeouts): number | undefined {
  const value = parseParameter(url, name);
  return value === undefined ? undefined : Number(value);
}

function toTlsConfig(mode: string | undefined, authorities: string | undefined): Pick<PoolConfig, 'ssl'> {
  if (mode === 'disable') return { ssl: false };
  if (mode === 'no-verify') return { ssl: { rejectUnauthorized: false } };
  if (authorities !== undefined) return { ssl: { ca: authorities } };
  return mode === undefined ? {} : { ssl: true };
}

/** Returns problems of a URL, in sentences that do not repeat it, because it contains a password. */
export function findPostgresUrlProblems(url: string, hasAuthorities: boolean): string[] {
  const problem = findUrlProblem(url);
  if (problem !== undefined) return [`DATABASE_URL: ${problem}`];
  const mode = parseSslMode(url);
  if (mode !== undefined && !sslModes.includes(mode))
    return [`DATABASE_URL: found sslmode=${mode}; allowed: ${sslModes.join(', ')}`];
  const timeout = findTimeoutProblem(url);
  if (timeout !== undefined) return [`DATABASE_URL: ${timeout}`];
  if (hasAuthorities && (mode === 'disable' || mode === 'no-verify'))
    return [`DATABASE_CA_FILE: DATABASE_URL sets sslmode=${mode}, which checks no certificate; remove one of the two`];
  return [];
}

function findUrlProblem(url: string): string | undefined {
  if (!/^postgres(ql)?:\/\//.test(url)) return 'allowed: postgres://…, or nothing for SQLite';
  if (parseHosts(url).some((host) => host.includes(',')))
    return 'names several hosts; allowed: one host, such as a proxy that finds the primary';
  // A user without a host, as used with a socket folder, is not valid in standard URLs.
  const parsed = URL.parse(url.replace('@/', '@localhost/'));
  if (parsed?.hash !== '' || /\s/.test(url) || !isDecodable(url))
    return 'is not a URL; write spaces and characters such as / @ # ? % in the password as %20 %2F %40 %23 %3F %25';
  return undefined;
}

function findTimeoutProblem(url: string): string | undefined {
  for (const [name, { min, max, description }] of Object.entries(timeouts)) {
    const value = parseParameter(url, name);
    if (value !== undefined && !(/^\d{1,5}$/.test(value) && Number(value) >= min && Number(value) <= max))
      return `found ${name}=${value.slice(0, 20)}; allowed: ${min} to ${max}, ${description}`;
  }
  // pg would assign the connection of a statement that still runs to the next request.
  if (parseParameter(url, 'query_timeout') !== undefined)
    return 'found query_timeout; use statement_timeout, which also ends the statement on the server';
  return undefined;
}

/** Returns true if every `%` begins an escape, and the decoded bytes are UTF-8. */
function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function parseHosts(url: string): string[] {
  const authority = /^\w+:\/\/([^/?#]*)/.exec(url)?.[1] ?? '';
  const parameter = /[?&]host=([^&#]*)/.exec(url)?.[1] ?? '';
  return [authority.slice(authority.lastIndexOf('@') + 1), parameter.replaceAll(/%2c/gi, ',')];
}

function parseSslMode(url: string): string | undefined {
  return parseParameter(url, 'sslmode');
}

function parseParameter(url: string, name: string): string | undefined {
  return new RegExp(`[?&]${name}=([^&#]*)`).exec(url)?.[1];
}

/** Reads the certificates in a file; undefined if the path is empty. @throws Error that says what to do */
export function readAuthorities(path: string, readFile: (path: string) => string): string | undefined {
  if (path === '') return undefined;
  const advice = 'allowed: the path of a readable file with certificates in PEM';
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    throw new Error(`DATABASE_CA_FILE: cannot be read; ${advice}`, { cause: error });
  }
  if (!text.includes('-----BEGIN CERTIFICATE-----'))
    throw new Error(`DATABASE_CA_FILE: contains no certificate; ${advice}`);
  return text;
}
