import type { PostgresLimits } from '../../../src/store/engine/postgres.ts';

/** Limits of work at PostgreSQL that no pause of a busy machine reaches; only tests of the limits have shorter ones. */
export const patientLimits: PostgresLimits = {
  statements: { requests: 60_000, reports: 60_000, changes: 60_000 },
  lock: 60_000,
  idleInTransaction: 60_000,
  cancel: 60_000,
};

/** A URL of the database with which a connection may take as long, where it is a URL that does not say how long. */
export function patientUrl(url: string): string {
  return withParameters(url, { connect_timeout: '60' });
}

/**
 * The environment of a process whose connections and statements at its database, where it names one, may take as long.
 * What its `DATABASE_URL` says itself stays.
 */
export function patientEnvironment(env: Record<string, string>): Record<string, string> {
  const { DATABASE_URL } = env;
  if (!DATABASE_URL) return env;
  const limits = { statement_timeout: '60000', lock_timeout: '60000', idle_in_transaction_session_timeout: '60000' };
  return { ...env, DATABASE_URL: withParameters(patientUrl(DATABASE_URL), limits) };
}

/** A URL with parameters added that it does not have yet; what is no URL stays as it is. */
function withParameters(url: string, parameters: Record<string, string>): string {
  if (!URL.canParse(url)) return url;
  const { searchParams } = new URL(url);
  const added = Object.entries(parameters).filter(([name]) => !searchParams.has(name));
  return added.reduce((text, [name, value]) => `${text}${text.includes('?') ? '&' : '?'}${name}=${value}`, url);
}
