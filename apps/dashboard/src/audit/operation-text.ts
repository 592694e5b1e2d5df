import type { JsonObject } from '../api-types.ts';

/** Display text for each operation. */
export const operationLabels: { [operation: string]: string } = {
  createMcpServer: 'Created a server',
  updateMcpServer: 'Changed a server',
  replaceMcpServer: 'Changed a server',
  applyMcpServer: 'Applied a server from a file',
  deleteMcpServer: 'Deleted a server',
  deleteDeletedServerSecrets: 'Deleted all secrets of a deleted server',
  restoreMcpServer: 'Restored a deleted server',
  importApi: 'Created a server from an API description',
  reimportApi: 'Reimported an API',
  compareImport: 'Compared a server with its API description',
  watchImport: 'Changed the daily check of an API description',
  addTool: 'Added a tool',
  updateTool: 'Changed a tool',
  removeTool: 'Removed a tool',
  duplicateMcpServer: 'Duplicated a server',
  updateVersion: 'Changed a version message',
  restoreVersion: 'Restored a version',
  setServerTags: 'Changed server tags',
  captureCalls: 'Changed call capture',
  setServerLimits: 'Changed server limits',
  setWorkspaceLimits: 'Changed workspace limits',
  setWorkspaceQuotas: 'Changed workspace quotas',
  setSecret: 'Set a secret',
  deleteSecret: 'Deleted a secret',
  saveModel: 'Saved a model',
  deleteModel: 'Deleted a model',
  createApiKey: 'Created an API key',
  revokeApiKey: 'Revoked an API key',
  createWebhook: 'Created a webhook',
  updateWebhook: 'Changed a webhook',
  deleteWebhook: 'Deleted a webhook',
  setNotificationSettings: 'Changed email notifications',
  setKeyLimits: 'Changed API key limits',
  revokeGrant: 'Revoked a login',
  addImport: 'Imported another API description',
  setOwnValues: 'Set own values',
  deleteOwnValues: 'Deleted own values',
  inviteMember: 'Invited a person',
  revokeInvitation: 'Withdrew an invitation',
  updateMember: 'Changed a role',
  setRoleGroups: 'Changed the roles by group',
  groupRole: 'Changed a role by group',
  removeMember: 'Removed a member',
  leaveWorkspace: 'Left the workspace',
  revokeMemberAccess: 'Ended the access of a former member',
  createWorkspace: 'Created a workspace',
  deleteWorkspace: 'Deleted the workspace',
  renameWorkspace: 'Renamed the workspace',
  switchWorkspace: 'Switched to another workspace',
};

/** Formats an operation: `createApiKey` → "Created an API key". Falls back to the operation name in words. */
export function formatOperation(operation: string): string {
  return operationLabels[operation] ?? operation.replaceAll(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Returns true for IDs. They are omitted, because the target's name is shown separately. */
const isId = (value: unknown): boolean =>
  Array.isArray(value) ? value.every(isId) : /^(?:grt|key|usr|srv|imp)_\w+$/.test(String(value));

function formatValue(value: unknown): string {
  if (Array.isArray(value)) return value.map(formatValue).join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Formats details: `{version: 3, scopes: ['call', 'manage']}` → "version: 3 · scopes: call, manage". */
export function formatDetail(detail: JsonObject): string {
  return Object.entries(detail)
    .filter(([, value]) => !isId(value))
    .map(([name, value]) => `${name.replaceAll('_', ' ')}: ${formatValue(value)}`)
    .join(' · ');
}
