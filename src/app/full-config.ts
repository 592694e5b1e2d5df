import type { Config } from '../config.ts';
import type { IdentitySource } from '../manage/identity.ts';
import type { Metric } from '../telemetry/metric.ts';

/** The workers of one service, as one of them sees them all. */
export type Siblings = { metrics(): Promise<Metric[][]> };

/** A configuration with everything that local mode finds out at the start. */
export type FullConfig = Config & {
  baseUrl: string;
  identity: IdentitySource;
  /** The other workers; undefined for a process that is all of the service, which holds the database and forgets old rows. */
  siblings: Siblings | undefined;
};
