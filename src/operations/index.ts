import { apiKeyOperations } from './api-keys.ts';
import { callOperations } from './calls.ts';
import { captureOperations } from './captures.ts';
import { connectionOperations } from './connection-check.ts';
import { grantOperations } from './grants.ts';
import { limitOperations, setWorkspaceLimits } from './limits.ts';
import { loginCheckOperations } from './login-checks.ts';
import type { Operation } from './operation.ts';
import { peopleOperations } from './people.ts';
import { secretOperations } from './secrets.ts';
import { serverOperations } from './servers.ts';
import { statisticsOperations } from './statistics.ts';

/** Everything that can be done to the system. Every door reads this list. */
export const operations: readonly Operation[] = [
  ...serverOperations,
  ...secretOperations,
  ...callOperations,
  ...captureOperations,
  ...limitOperations,
  ...connectionOperations,
  ...loginCheckOperations,
  ...statisticsOperations,
  ...apiKeyOperations,
  ...grantOperations,
  ...peopleOperations,
];

/** What only the operator does, at the machine: no door offers it. */
export const operatorOperations: readonly Operation[] = [setWorkspaceLimits];

export type { Actor } from './operation.ts';
