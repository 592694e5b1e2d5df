import type { PostgresLimits } from '../../../apps/server/src/store/engine/postgres.ts';

/** PostgreSQL time limits that no pause of a busy machine reaches. Only tests of the limits use shorter ones. */
export const generousLimits: PostgresLimits = {
  statements: { requests: 60_000, reports: 60_000, changes: 60_000 },
  lock: 60_000,
  idleInTransaction: 60_000,
  cancel: 60_000,
};

/** Returns a database URL with the same connection timeout, unless it sets its own or is not a URL. */
export function withConnectTimeout(url: string): string {
  return withParameters(url, { connect_timeout: '60' });
}

/**
 * Returns an environment whose DATABASE_URL, if any, gives connections and statements the same time limits. Parameters
 * that the URL already has are kept.
 */
export function withGenerousTimeouts(env: Record<string, string>): Record<string, string> {
  const { DATABASE_URL } = env;
  if (!DATABASE_URL) return env;
  const limits = { statement_timeout: '60000', lock_timeout: '60000', idle_in_transaction_session_timeout: '60000' };
  return { ...env, DATABASE_URL: withParameters(withConnectTimeout(DATABASE_URL), limits) };
}

/** Adds the parameters that a URL does not have yet. A text that is not a URL is returned unchanged. */
function withParameters(url: string, parameters: Record<string, string>): string {
  if (!URL.canParse(url)) return url;
  const { searchParams } = new URL(url);
  const missing = Object.entries(parameters).filter(([name]) => !searchParams.has(name));
  return missing.reduce((text, [name, value]) => `${text}${text.includes('?') ? '&' : '?'}${name}=${value}`, url);
}
