import type { PoolConfig } from 'pg';

/**
 * Supported values of `sslmode`. `disable` and `no-verify` do not verify the server; all others verify its certificate
 * and name.
 */
const sslModes = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'];

/** Default time that a request waits for a connection, in seconds, unless the URL sets it. */
const usualConnectSeconds = 2;

const milliseconds = { least: 1000, most: 60_000 };
/** Time limits that the URL may set, with the name and unit that libpq or PostgreSQL uses. */
const timeouts = {
  connect_timeout: { least: 1, most: 300, says: 'the time in seconds that a request waits for a connection' },
  statement_timeout: { ...milliseconds, says: 'the time in milliseconds that a statement may take' },
  lock_timeout: {
    ...milliseconds,
    says: 'the time in milliseconds that a statement in a transaction waits for a lock',
  },
  idle_in_transaction_session_timeout: {
    ...milliseconds,
    says: 'the time in milliseconds that this program may be idle within a transaction',
  },
};

/** Parameters of the URL that address this program and not the server. */
const ownParameters = new RegExp(`(?<=[?&])(${['sslmode', ...Object.keys(timeouts)].join('|')})=[^&]*&?`, 'g');

/**
 * Returns pg's options for a URL. Without `sslmode`, the connection is unencrypted, unless `authorities` (PEM) are
 * given to verify the server's certificate with.
 */
export function postgresConfig(url: string, authorities: string | undefined): PoolConfig {
  // pg would print warnings about some TLS modes, let the URL's settings override ours, and send time limits as startup
  // parameters, which poolers reject.
  const connectionString = url.replaceAll(ownParameters, '');
  const connectionTimeoutMillis = (timeoutOf(url, 'connect_timeout') ?? usualConnectSeconds) * 1000;
  return { connectionString, connectionTimeoutMillis, ...tlsConfig(sslModeOf(url), authorities) };
}

/** Returns a time limit that the URL sets, in the unit of its name; undefined if the URL does not set it. */
export function timeoutOf(url: string, name: keyof typeof timeouts): number | undefined {
  const value = parameterOf(url, name);
  return value === undefined ? undefined : Number(value);
}

function tlsConfig(mode: string | undefined, authorities: string | undefined): Pick<PoolConfig, 'ssl'> {
  if (mode === 'disable') return { ssl: false };
  if (mode === 'no-verify') return { ssl: { rejectUnauthorized: false } };
  if (authorities !== undefined) return { ssl: { ca: authorities } };
  return mode === undefined ? {} : { ssl: true };
}

/** Returns problems of a URL, in sentences that do not repeat it, because it contains a password. */
export function postgresUrlProblems(url: string, hasAuthorities: boolean): string[] {
  const problem = urlProblem(url);
  if (problem !== undefined) return [`DATABASE_URL: ${problem}`];
  const mode = sslModeOf(url);
  if (mode !== undefined && !sslModes.includes(mode))
    return [`DATABASE_URL: found sslmode=${mode}; allowed: ${sslModes.join(', ')}`];
  const timeout = timeoutProblem(url);
  if (timeout !== undefined) return [`DATABASE_URL: ${timeout}`];
  if (hasAuthorities && (mode === 'disable' || mode === 'no-verify'))
    return [`DATABASE_CA_FILE: DATABASE_URL sets sslmode=${mode}, which checks no certificate; remove one of the two`];
  return [];
}

function urlProblem(url: string): string | undefined {
  if (!/^postgres(ql)?:\/\//.test(url)) return 'allowed: postgres://…, or nothing for SQLite';
  if (hostsOf(url).some((host) => host.includes(',')))
    return 'names several hosts; allowed: one host, such as a proxy that finds the primary';
  // A user without a host, as used with a socket folder, is not valid in standard URLs.
  const parsed = URL.parse(url.replace('@/', '@localhost/'));
  if (parsed?.hash !== '' || /\s/.test(url) || !isDecodable(url))
    return 'is not a URL; write spaces and characters such as / @ # ? % in the password as %20 %2F %40 %23 %3F %25';
  return undefined;
}

function timeoutProblem(url: string): string | undefined {
  for (const [name, { least, most, says }] of Object.entries(timeouts)) {
    const value = parameterOf(url, name);
    if (value !== undefined && !(/^\d{1,5}$/.test(value) && Number(value) >= least && Number(value) <= most))
      return `found ${name}=${value.slice(0, 20)}; allowed: ${least} to ${most}, ${says}`;
  }
  // pg would assign the connection of a statement that still runs to the next request.
  if (parameterOf(url, 'query_timeout') !== undefined)
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

function hostsOf(url: string): string[] {
  const authority = /^\w+:\/\/([^/?#]*)/.exec(url)?.[1] ?? '';
  const parameter = /[?&]host=([^&#]*)/.exec(url)?.[1] ?? '';
  return [authority.slice(authority.lastIndexOf('@') + 1), parameter.replaceAll(/%2c/gi, ',')];
}

function sslModeOf(url: string): string | undefined {
  return parameterOf(url, 'sslmode');
}

function parameterOf(url: string, name: string): string | undefined {
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
