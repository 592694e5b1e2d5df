import type { PostgresLimits } from '../../../src/store/engine/postgres.ts';

/** Limits of work at PostgreSQL that no pause of a busy machine reaches; only tests of the limits have shorter ones. */
export const patientLimits: PostgresLimits = {
  statements: { requests: 60_000, reports: 60_000, changes: 60_000 },
  lock: 60_000,
  idleInTransaction: 60_000,
  cancel: 60_000,
};

/** A URL of the database with which a connection may take as long, where the URL does not say how long. */
export function patientUrl(url: string): string {
  return /[?&]connect_timeout=/.test(url) ? url : `${url}${url.includes('?') ? '&' : '?'}connect_timeout=60`;
}
