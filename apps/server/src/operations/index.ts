import type { z } from 'zod';
import { apiKeyOperations } from './api-keys.ts';
import { applyOperations } from './applying/apply-server.ts';
import { captureOperations } from './calls/captures.ts';
import { responseFieldOperations } from './calls/response-fields.ts';
import { statisticsOperations } from './calls/statistics.ts';
import { callOperations } from './calls/try-tool.ts';
import { usageOperations } from './calls/usage-operations.ts';
import { connectionOperations } from './connection/connection-check.ts';
import { loginCheckOperations } from './connection/login-checks.ts';
import { addImport } from './imports/add-import.ts';
import { importApi } from './imports/import-api.ts';
import { reimportApi } from './imports/reimport-api.ts';
import { watchOperations } from './imports/watch-operations.ts';
import { limitOperations, setWorkspaceLimits } from './limits.ts';
import { grantOperations } from './logins.ts';
import { notificationOperations } from './notifications/notifications.ts';
import type { Operation } from './operation.ts';
import { ownValueOperations } from './own-values.ts';
import { memberAccessOperations } from './people/member-access.ts';
import { memberOperations } from './people/members.ts';
import { ownWorkspaceOperations } from './people/own-workspaces.ts';
import { roleGroupOperations } from './people/role-groups.ts';
import { peopleOperations } from './people/workspaces.ts';
import { askModel } from './playground/ask-model.ts';
import { modelOperations } from './playground/models.ts';
import { quotaOperations, setWorkspaceQuotas } from './quotas/quotas.ts';
import type { operationRoutes } from './routes.ts';
import { search } from './search.ts';
import { configurationHelpOperations } from './servers/describe-configuration.ts';
import { needsOperations } from './servers/pending-actions.ts';
import { secretOperations } from './servers/secrets.ts';
import { serverOperations } from './servers/servers.ts';
import { toolOperations } from './servers/tools.ts';

/** All operations by name. REST, OpenAPI, the management server, and the reference pages are derived from them. */
export const operations = {
  search,
  ...serverOperations,
  ...configurationHelpOperations,
  ...applyOperations,
  ...toolOperations,
  importApi,
  addImport,
  reimportApi,
  ...watchOperations,
  ...secretOperations,
  ...needsOperations,
  ...callOperations,
  ...captureOperations,
  askModel,
  ...modelOperations,
  ...responseFieldOperations,
  ...limitOperations,
  ...quotaOperations,
  ...connectionOperations,
  ...loginCheckOperations,
  ...statisticsOperations,
  ...usageOperations,
  ...apiKeyOperations,
  ...grantOperations,
  ...ownValueOperations,
  ...notificationOperations,
  ...peopleOperations,
  ...ownWorkspaceOperations,
  ...memberOperations,
  ...memberAccessOperations,
  ...roleGroupOperations,
} satisfies { [Name in OperationName]: Operation<Name> };

/** All operations as a list, in the order of the reference pages. */
export const operationList: readonly Operation[] = Object.values(operations);

/** Operations for the operator at the machine. No network interface offers them. */
export const operatorOperations = { setWorkspaceLimits, setWorkspaceQuotas };

type Operations = typeof operations & typeof operatorOperations;

export type OperationName = keyof typeof operationRoutes;

/** Input type of an operation, as callers write it. */
export type Input<Name extends keyof Operations> = FromJson<z.input<Operations[Name]['input']>>;

/** Output type of an operation, as parsed from JSON. */
export type Output<Name extends keyof Operations> = FromJson<z.input<Operations[Name]['output']>>;

/**
 * JSON form of a type: JSON has no `undefined`, so a field is present or absent. A field that takes any JSON stays as
 * it is.
 */
type FromJson<T> = [z.core.util.JSONType] extends [T]
  ? T
  : T extends object
    ? { [Key in keyof T]: FromJson<Exclude<T[Key], undefined>> }
    : T;

export type { Actor, Operation } from './operation.ts';
export { buildRestRequest } from './routes.ts';
