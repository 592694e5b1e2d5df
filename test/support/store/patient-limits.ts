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
  return !URL.canParse(url) || /[?&]connect_timeout=/.test(url)
    ? url
    : `${url}${url.includes('?') ? '&' : '?'}connect_timeout=60`;
}

/** An environment with which the connections to its database, where it names one, may take as long. */
export function patientEnvironment(env: Record<string, string>): Record<string, string> {
  const { DATABASE_URL } = env;
  return DATABASE_URL ? { ...env, DATABASE_URL: patientUrl(DATABASE_URL) } : env;
}
