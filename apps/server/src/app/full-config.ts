import type { Config } from '../config.ts';
import type { IdentitySource } from '../manage/identity.ts';
import type { Metric } from '../telemetry/metric.ts';

/** Access of one worker to all workers of its service. `metrics` returns the metrics of each worker. */
export type Siblings = { metrics(): Promise<Metric[][]> };

/** Configuration with the values that local mode determines at startup. */
export type FullConfig = Config & {
  baseUrl: string;
  identity: IdentitySource;
  /** Undefined for a single process, which then also locks the database and deletes old rows. */
  siblings: Siblings | undefined;
};

/**
 * Returns true if only a sign-in link signs in. On loopback, one click is enough, but neighbors may reach the port of a
 * container.
 */
export function requiresSignInLink({ identity, isInContainer }: FullConfig): boolean {
  return identity.isBuiltIn && isInContainer;
}
