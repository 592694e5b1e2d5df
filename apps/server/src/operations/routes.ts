import { AppError } from '@toolhost/errors/errors';

/**
 * REST route of each operation, below `/api/v1`. Plain data without imports, so that the dashboard and the command line
 * can use it too. The order is the order of the reference pages.
 */
export const operationRoutes = {
  search: { method: 'GET', path: '/search' },
  listMcpServers: { method: 'GET', path: '/servers' },
  listPendingActions: { method: 'GET', path: '/pending-actions' },
  createMcpServer: { method: 'POST', path: '/servers' },
  getMcpServer: { method: 'GET', path: '/servers/{slug}' },
  updateMcpServer: { method: 'PATCH', path: '/servers/{slug}' },
  replaceMcpServer: { method: 'PUT', path: '/servers/{slug}' },
  deleteMcpServer: { method: 'DELETE', path: '/servers/{slug}' },
  listDeletedServers: { method: 'GET', path: '/deleted-servers' },
  deleteDeletedServerSecrets: { method: 'DELETE', path: '/deleted-servers/{slug}/secrets' },
  restoreMcpServer: { method: 'POST', path: '/servers/{slug}/restore' },
  setServerTags: { method: 'PUT', path: '/servers/{slug}/tags' },
  addTool: { method: 'POST', path: '/servers/{slug}/tools' },
  updateTool: { method: 'PATCH', path: '/servers/{slug}/tools/{tool}' },
  removeTool: { method: 'DELETE', path: '/servers/{slug}/tools/{tool}' },
  planMcpServer: { method: 'POST', path: '/servers/{slug}/plan' },
  applyMcpServer: { method: 'POST', path: '/servers/{slug}/apply' },
  planDuplicate: { method: 'POST', path: '/servers/{slug}/duplicate/plan' },
  duplicateMcpServer: { method: 'POST', path: '/servers/{slug}/duplicate' },
  describeConfiguration: { method: 'GET', path: '/configuration/{part}' },
  checkMcpServer: { method: 'POST', path: '/check' },
  importApi: { method: 'POST', path: '/import' },
  addImport: { method: 'POST', path: '/servers/{slug}/imports' },
  reimportApi: { method: 'POST', path: '/servers/{slug}/import' },
  compareImport: { method: 'POST', path: '/servers/{slug}/import/compare' },
  watchImport: { method: 'PUT', path: '/servers/{slug}/import/watch' },
  listVersions: { method: 'GET', path: '/servers/{slug}/versions' },
  compareVersions: { method: 'GET', path: '/servers/{slug}/versions/{before}/compare/{version}' },
  updateVersion: { method: 'PATCH', path: '/servers/{slug}/versions/{version}' },
  restoreVersion: { method: 'POST', path: '/servers/{slug}/versions/{version}/restore' },
  setSecret: { method: 'PUT', path: '/servers/{slug}/secrets/{name}' },
  deleteSecret: { method: 'DELETE', path: '/servers/{slug}/secrets/{name}' },
  listSecrets: { method: 'GET', path: '/servers/{slug}/secrets' },
  callTool: { method: 'POST', path: '/servers/{slug}/tools/{tool}/call' },
  askModel: { method: 'POST', path: '/servers/{slug}/playground' },
  listModels: { method: 'GET', path: '/models' },
  saveModel: { method: 'PUT', path: '/models/{name}' },
  deleteModel: { method: 'DELETE', path: '/models/{name}' },
  proposeResponseFields: { method: 'POST', path: '/servers/{slug}/tools/{tool}/response-fields' },
  previewToolCall: { method: 'POST', path: '/servers/{slug}/tools/{tool}/preview' },
  listCalls: { method: 'GET', path: '/calls' },
  listServerCalls: { method: 'GET', path: '/servers/{slug}/calls' },
  exportCalls: { method: 'GET', path: '/calls.csv' },
  getCall: { method: 'GET', path: '/calls/{id}' },
  listAuditEvents: { method: 'GET', path: '/audit' },
  captureCalls: { method: 'POST', path: '/servers/{slug}/capture' },
  getServerLimits: { method: 'GET', path: '/servers/{slug}/limits' },
  setServerLimits: { method: 'PATCH', path: '/servers/{slug}/limits' },
  getWorkspaceLimits: { method: 'GET', path: '/workspace/limits' },
  getWorkspaceQuotas: { method: 'GET', path: '/workspace/quotas' },
  checkConnection: { method: 'POST', path: '/servers/{slug}/connection-check' },
  checkLogin: { method: 'POST', path: '/servers/{slug}/login-check' },
  getServerActivity: { method: 'GET', path: '/activity' },
  getToolActivity: { method: 'GET', path: '/servers/{slug}/activity' },
  getCallStatistics: { method: 'GET', path: '/statistics' },
  getUsage: { method: 'GET', path: '/usage' },
  exportUsage: { method: 'GET', path: '/usage.csv' },
  createApiKey: { method: 'POST', path: '/keys' },
  listApiKeys: { method: 'GET', path: '/keys' },
  revokeApiKey: { method: 'DELETE', path: '/keys/{id}' },
  setKeyLimits: { method: 'PATCH', path: '/keys/{id}/limits' },
  listGrants: { method: 'GET', path: '/grants' },
  revokeGrant: { method: 'DELETE', path: '/grants/{id}' },
  listOwnValues: { method: 'GET', path: '/own-values' },
  setOwnValues: { method: 'PUT', path: '/servers/{slug}/own-values' },
  deleteOwnValues: { method: 'DELETE', path: '/servers/{slug}/own-values' },
  listWebhooks: { method: 'GET', path: '/webhooks' },
  createWebhook: { method: 'POST', path: '/webhooks' },
  updateWebhook: { method: 'PATCH', path: '/webhooks/{id}' },
  deleteWebhook: { method: 'DELETE', path: '/webhooks/{id}' },
  testWebhook: { method: 'POST', path: '/webhooks/{id}/test' },
  listNotifications: { method: 'GET', path: '/notifications' },
  getNotificationSettings: { method: 'GET', path: '/notification-settings' },
  setNotificationSettings: { method: 'PUT', path: '/notification-settings' },
  getSession: { method: 'GET', path: '/session' },
  switchWorkspace: { method: 'POST', path: '/session/workspace' },
  createWorkspace: { method: 'POST', path: '/workspaces' },
  exportWorkspace: { method: 'GET', path: '/workspace.json' },
  deleteWorkspace: { method: 'POST', path: '/workspace/delete' },
  renameWorkspace: { method: 'PATCH', path: '/workspace' },
  listMembers: { method: 'GET', path: '/members' },
  inviteMember: { method: 'POST', path: '/invitations' },
  revokeInvitation: { method: 'DELETE', path: '/invitations/{email}' },
  updateMember: { method: 'PATCH', path: '/members/{id}' },
  getRoleGroups: { method: 'GET', path: '/role-groups' },
  setRoleGroups: { method: 'PUT', path: '/role-groups' },
  leaveWorkspace: { method: 'POST', path: '/workspace/leave' },
  removeMember: { method: 'DELETE', path: '/members/{id}' },
  listMemberAccess: { method: 'GET', path: '/member-access' },
  revokeMemberAccess: { method: 'DELETE', path: '/member-access/{id}' },
} as const satisfies Record<string, Route>;

export type Route = { method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'; path: string };

/** Routes of the operations for the operator at the machine. No network interface offers them. */
export const operatorRoutes = {
  setWorkspaceLimits: { method: 'PATCH', path: '/workspace/limits' },
  setWorkspaceQuotas: { method: 'PATCH', path: '/workspace/quotas' },
} as const satisfies Record<string, Route>;

/** A request to the REST API: `path` below `/api/v1` including its query, and the fields of its JSON body. */
export type RestRequest = { method: Route['method']; path: string; body: object | undefined };

/**
 * Builds a request from the input of an operation. Fields named in the path go into the path, all others into the query
 * of a GET request or the body of any other request.
 * @throws AppError notFound for a name that is empty or consists of dots
 */
export function buildRestRequest({ method, path }: Route, input: object): RestRequest {
  const remaining = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
  const requestPath = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(remaining.get(name));
    remaining.delete(name);
    // URLs cannot express these names: `..` would lead to another route.
    if (/^\.{0,2}$/.test(value)) throw new AppError('notFound', `there is no ${name} ${JSON.stringify(value)}`);
    return encodeURIComponent(value);
  });
  if (remaining.size === 0) return { method, path: requestPath, body: undefined };
  if (method !== 'GET') return { method, path: requestPath, body: Object.fromEntries(remaining) };
  const query = new URLSearchParams([...remaining].map(([name, value]) => [name, String(value)]));
  return { method, path: `${requestPath}?${query}`, body: undefined };
}
