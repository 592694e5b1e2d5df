/** Names for REST API responses and their fields, derived from the schemas in `apps/server/src/operations/`. */
import type { Output } from '@toolhost/server/operations';

export type JsonObject = { [key: string]: unknown };

export type Session = Output<'getSession'>;
export type Workspace = Session['workspace'];
export type Quotas = Output<'getWorkspaceQuotas'>;
export type Member = Output<'listMembers'>['members'][number];
export type Role = Member['role'];
export type RoleGroup = Output<'getRoleGroups'>['role_groups'][number];
export type Invitation = Output<'listMembers'>['invitations'][number];
export type MemberAccess = Omit<Output<'listMemberAccess'>['people'][number], 'id' | 'name' | 'email'>;

export type ServerDetail = Output<'getMcpServer'>;
export type ServerRecord = ServerDetail['server'];
export type DeletedServer = Output<'listDeletedServers'>['servers'][number];
export type Access = ServerRecord['access'];
export type ImportPlan = Output<'importApi'>;
export type ReimportPlan = Output<'reimportApi'>;
export type StoredServer = Output<'createMcpServer'>;
export type Verdict = Output<'checkMcpServer'>;
export type FieldProblem = Verdict['problems'][number];
export type Version = Output<'listVersions'>['versions'][number];
export type Change = Output<'planDuplicate'>['changes'][number];
export type Secret = Output<'listSecrets'>['secrets'][number];
export type ServerLimits = Output<'getServerLimits'>;
export type Limit = ServerLimits['calls_per_second'];
export type LimitUsage = NonNullable<ServerLimits['use']>;
export type UpstreamState = ServerLimits['upstreams'][number];
export type Activity = Output<'getServerActivity'>['servers'][number];
export type ToolFigures = Output<'getToolActivity'>['tools'][number];
export type OwnValues = Output<'listOwnValues'>['servers'][number];
export type Grant = Output<'listGrants'>['grants'][number];

export type ApiKey = Output<'listApiKeys'>['keys'][number];
export type NewApiKey = Output<'createApiKey'>;
export type KeyScope = ApiKey['scopes'][number];

export type ToolCallResult = Output<'callTool'>;
export type ContentBlock = ToolCallResult['content'][number];
export type Preview = Output<'previewToolCall'>;
export type WireRequest = Preview['request'];
export type ModelReply = Output<'askModel'>;
export type ModelReplyPart = ModelReply['parts'][number];
export type StoredModel = Output<'listModels'>['models'][number];
export type CallDetail = Output<'getCall'>;
export type Call = CallDetail['call'];
export type Capture = NonNullable<CallDetail['capture']>;
export type Proposal = Output<'proposeResponseFields'>;
export type UpstreamResponse = NonNullable<ToolCallResult['response']>;
export type Header = UpstreamResponse['headers'][number];
export type Statistics = Output<'getCallStatistics'>;
export type Webhook = Output<'listWebhooks'>['webhooks'][number];
export type NewWebhook = Output<'createWebhook'>;
export type NotificationRecord = Output<'listNotifications'>['notifications'][number];
export type NotificationEvent = NotificationRecord['event'];
export type Usage = Output<'getUsage'>;
export type SearchResults = Output<'search'>;
export type AuditEvent = Output<'listAuditEvents'>['events'][number];
