import type { z } from 'zod';
import { apiKeyOperations } from './api-keys.ts';
import { captureOperations } from './calls/captures.ts';
import { statisticsOperations } from './calls/statistics.ts';
import { callOperations } from './calls/try-tool.ts';
import { connectionOperations } from './connection/connection-check.ts';
import { loginCheckOperations } from './connection/login-checks.ts';
import { grantOperations } from './grants.ts';
import { keyLimitOperations } from './key-limits.ts';
import { limitOperations, setWorkspaceLimits } from './limits.ts';
import type { Operation } from './operation.ts';
import { memberOperations } from './people/members.ts';
import { peopleOperations } from './people/workspaces.ts';
import { quotaOperations, setWorkspaceQuotas } from './quotas/quotas.ts';
import type { operationRoutes } from './routes.ts';
import { secretOperations } from './servers/secrets.ts';
import { serverOperations } from './servers/servers.ts';

/** Everything that can be done to the system, by name. REST, OpenAPI, the management server and the pages read this. */
export const operations = {
  ...serverOperations,
  ...secretOperations,
  ...callOperations,
  ...captureOperations,
  ...limitOperations,
  ...quotaOperations,
  ...connectionOperations,
  ...loginCheckOperations,
  ...statisticsOperations,
  ...apiKeyOperations,
  ...keyLimitOperations,
  ...grantOperations,
  ...peopleOperations,
  ...memberOperations,
} satisfies { [Name in OperationName]: Operation<Name> };

/** The same in the order of the pages, for those who go through all of them. */
export const operationList: readonly Operation[] = Object.values(operations);

/** What only the operator does, at the machine: no network interface offers it. */
export const operatorOperations = { setWorkspaceLimits, setWorkspaceQuotas };

type Operations = typeof operations & typeof operatorOperations;

export type OperationName = keyof typeof operationRoutes;

/** What an operation takes, as its callers write it. */
export type Input<Name extends keyof Operations> = OfJson<z.input<Operations[Name]['input']>>;

/** What an operation gives, as it is after JSON. */
export type Output<Name extends keyof Operations> = OfJson<z.input<Operations[Name]['output']>>;

/** JSON has no `undefined`: a field is there or it is not. */
type OfJson<T> = T extends object ? { [Key in keyof T]: OfJson<Exclude<T[Key], undefined>> } : T;

export type { Actor } from './operation.ts';
