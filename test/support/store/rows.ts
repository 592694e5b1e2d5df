import type { ApiKey } from '../../../apps/server/src/store/api-keys.ts';
import type { CallRecord } from '../../../apps/server/src/store/calls/call-writer.ts';
import type { Grant } from '../../../apps/server/src/store/logins/grants.ts';
import type { StoredServer } from '../../../apps/server/src/store/servers/servers.ts';

/** Builders of complete rows. A test sets only the values that matter to it. */
export function buildServer(more: Partial<StoredServer> = {}): StoredServer {
  const slug = more.slug ?? 'sample';
  return {
    id: `srv_${slug}`,
    workspaceId: 'ours',
    slug,
    name: 'Sample',
    config: { name: 'Sample', slug, tools: [] },
    version: 1,
    createdBy: 'key_1',
    createdAt: 1000,
    updatedAt: 1000,
    ...more,
  };
}

export function buildApiKey(more: Partial<ApiKey> = {}): ApiKey {
  return {
    id: 'key_1',
    workspaceId: 'ours',
    name: 'Sample',
    secretHash: 'a'.repeat(64),
    scopes: ['manage:read', 'call'],
    servers: ['one', 'two'],
    createdBy: 'operator',
    createdAt: 1000,
    expiresAt: 5000,
    revokedAt: undefined,
    lastUsedAt: undefined,
    ...more,
  };
}

export function buildCall(more: Partial<CallRecord> = {}): CallRecord {
  const id = more.id ?? 'call_1';
  return {
    id,
    workspace_id: 'ours',
    slug: 'sample',
    tool: 'get',
    started_at: 1000,
    caller_kind: 'api_key',
    key_id: 'key_1',
    upstream_host: 'api.example',
    upstream_status: 200,
    outcome: 'ok',
    duration_ms: 12,
    upstream_ms: 10,
    bytes_in: 100,
    bytes_out: 200,
    reason: null,
    estimated_tokens: 50,
    view: null,
    model: null,
    upstream_requests: null,
    ...more,
  };
}

export function buildGrant(more: Partial<Grant> = {}): Grant {
  return {
    id: 'grt_1',
    workspace_id: 'ours',
    server_id: 'srv_1',
    slug: 'sample',
    client_id: 'client',
    client_name: 'Agent',
    user_id: null,
    person: null,
    person_id: null,
    scope: 'read',
    agreement: 'agreed',
    sealed_tokens: 'sealed',
    tokens_version: 1,
    refreshing_until: null,
    generation: 1,
    rotated_at: 1,
    created_at: 1,
    last_used_at: null,
    broken_at: null,
    revoked_at: null,
    missing_scope: null,
    challenged_at: null,
    ...more,
  };
}
