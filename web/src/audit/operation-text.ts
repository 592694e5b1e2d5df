import type { JsonObject } from '../answers.ts';

/** What people read for an operation. */
export const texts: { [operation: string]: string } = {
  createMcpServer: 'Created a server',
  updateMcpServer: 'Changed a server',
  replaceMcpServer: 'Changed a server',
  applyMcpServer: 'Applied a server from a file',
  deleteMcpServer: 'Deleted a server',
  deleteSecretsOfDeletedServer: 'Deleted all secrets of a deleted server',
  restoreMcpServer: 'Restored a deleted server',
  importApi: 'Made a server from a description of an API',
  importAgain: 'Imported an API again',
  compareImport: 'Compared a server with the description of its API',
  watchImport: 'Changed whether a description is watched',
  addTool: 'Added a tool',
  updateTool: 'Changed a tool',
  removeTool: 'Removed a tool',
  duplicateMcpServer: 'Duplicated a server',
  noteVersion: 'Changed the message of a version',
  restoreVersion: 'Restored a version',
  setServerTags: 'Changed the tags of a server',
  captureCalls: 'Changed what is captured',
  setServerLimits: 'Changed the limits of a server',
  setWorkspaceLimits: 'Changed the limits of the workspace',
  setWorkspaceQuotas: 'Changed the quotas of the workspace',
  setSecret: 'Set a secret',
  deleteSecret: 'Deleted a secret',
  saveModel: 'Stored a model',
  deleteModel: 'Deleted a model',
  createApiKey: 'Made an API key',
  revokeApiKey: 'Revoked an API key',
  createWebhook: 'Made a webhook',
  updateWebhook: 'Changed a webhook',
  deleteWebhook: 'Deleted a webhook',
  setNotifications: 'Chose what to be mailed',
  setKeyLimits: 'Set the limits of an API key',
  revokeGrant: 'Ended a login',
  inviteMember: 'Invited a person',
  withdrawInvitation: 'Withdrew an invitation',
  changeMember: 'Changed a role',
  removeMember: 'Removed a member',
  leaveWorkspace: 'Left the workspace',
  endRemains: 'Ended what a person left',
  createWorkspace: 'Made another workspace',
  deleteWorkspace: 'Deleted the workspace',
  renameWorkspace: 'Renamed the workspace',
  switchWorkspace: 'Switched to another workspace',
};

/** `createApiKey` → "Made an API key"; an operation without a text of its own gets its name. */
export function operationText(operation: string): string {
  return texts[operation] ?? operation.replaceAll(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Ids say nothing to people; what they name stands beside them. */
const isId = (value: unknown): boolean =>
  Array.isArray(value) ? value.every(isId) : /^(?:grt|key|usr|srv|imp)_\w+$/.test(String(value));

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.map(valueText).join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** `{version: 3, scopes: ['call', 'manage']}` → "version: 3 · scopes: call, manage". */
export function detailText(detail: JsonObject): string {
  return Object.entries(detail)
    .filter(([, value]) => !isId(value))
    .map(([name, value]) => `${name.replaceAll('_', ' ')}: ${valueText(value)}`)
    .join(' · ');
}
