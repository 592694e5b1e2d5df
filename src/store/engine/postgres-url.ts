import type { PoolConfig } from 'pg';

/** Values of `sslmode` that do not check the server; all others check its certificate and its name. */
const sslModes = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'];

/** How long a request waits for a connection, in seconds, as `connect_timeout` of the URL says. */
const connectTimeouts = { least: 1, usual: 2, most: 300 };

/**
 * pg's options for a URL. Without `sslmode` the connection is plain, unless there are `authorities` (PEM) to check the
 * server's certificate with.
 */
export function postgresConfig(url: string, authorities: string | undefined): PoolConfig {
  // pg would print warnings about some of the modes, and let the URL's settings replace ours.
  const connectionString = url.replace(/(?<=[?&])sslmode=[^&]*&?/, '');
  const connectionTimeoutMillis = Number(parameterOf(url, 'connect_timeout') ?? connectTimeouts.usual) * 1000;
  return { connectionString, connectionTimeoutMillis, ...tlsConfig(sslModeOf(url), authorities) };
}

function tlsConfig(mode: string | undefined, authorities: string | undefined): Pick<PoolConfig, 'ssl'> {
  if (mode === 'disable') return { ssl: false };
  if (mode === 'no-verify') return { ssl: { rejectUnauthorized: false } };
  if (authorities !== undefined) return { ssl: { ca: authorities } };
  return mode === undefined ? {} : { ssl: true };
}

/** Problems of a URL, in sentences that do not repeat it because it holds a password. */
export function postgresUrlProblems(url: string, hasAuthorities: boolean): string[] {
  const problem = urlProblem(url);
  if (problem !== undefined) return [`DATABASE_URL: ${problem}`];
  const mode = sslModeOf(url);
  if (mode !== undefined && !sslModes.includes(mode))
    return [`DATABASE_URL: found sslmode=${mode}; allowed: ${sslModes.join(', ')}`];
  const { least, most } = connectTimeouts;
  const timeout = parameterOf(url, 'connect_timeout');
  if (timeout !== undefined && !(/^\d{1,3}$/.test(timeout) && Number(timeout) >= least && Number(timeout) <= most))
    return [
      `DATABASE_URL: found connect_timeout=${timeout.slice(0, 20)}; allowed: ${least} to ${most}, the seconds that a request waits for a connection`,
    ];
  if (hasAuthorities && (mode === 'disable' || mode === 'no-verify'))
    return [
      `DATABASE_CA_FILE: DATABASE_URL says sslmode=${mode}, with which no certificate is checked; leave one of the two out`,
    ];
  return [];
}

function urlProblem(url: string): string | undefined {
  if (!/^postgres(ql)?:\/\//.test(url)) return 'allowed: postgres://…, or nothing for SQLite';
  if (hostsOf(url).some((host) => host.includes(',')))
    return 'names several hosts; allowed: one, such as that of a proxy which finds the primary';
  // A user without a host, as for a socket in a folder, is not in the standard of URLs.
  const parsed = URL.parse(url.replace('@/', '@localhost/'));
  if (parsed?.hash !== '' || /\s/.test(url) || !isDecodable(url))
    return 'is not a URL; write spaces and characters such as / @ # ? % in the password as %20 %2F %40 %23 %3F %25';
  return undefined;
}

/** Whether every `%` begins an escape, and the escapes together are UTF-8. */
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

/** The certificates in a file; undefined when none is named. @throws Error that says what to do */
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
    throw new Error(`DATABASE_CA_FILE: holds no certificate; ${advice}`);
  return text;
}
