/** The shapes of the REST API, as docs/reference/operations.md describes them. */

export type FieldProblem = { path: string; message: string };

export type Role = 'owner' | 'editor' | 'viewer';
export type Workspace = { id: string; name: string; role: Role };
export type Session = {
  user: { id: string; name?: string; email?: string };
  workspace: Workspace;
  workspaces: Workspace[];
  base_url: string;
  management_url: string;
  call_retention_days: number;
};

export type Access = 'oauth' | 'passthrough' | 'api_key' | 'caller_token';
export type ServerRecord = {
  id: string;
  name: string;
  slug: string;
  description?: string;
  url: string;
  access: Access;
  tool_count: number;
  version: number;
  created_at: string;
  updated_at: string;
  created_by: string;
};

export type JsonObject = { [key: string]: unknown };

export type ServerDetail = {
  server: ServerRecord;
  config: JsonObject;
  warnings: FieldProblem[];
  secrets: string[];
  callback_url?: string;
  capture_until?: string;
};

export type StoredServer = { server: ServerRecord; url: string; warnings: FieldProblem[]; next_steps: string[] };
export type Verdict = { valid: boolean; problems: FieldProblem[]; warnings: FieldProblem[]; access?: Access };
export type Version = { version: number; created_at: string; created_by: string; config: JsonObject };
export type Secret = { name: string; origins: string[]; used_by: string[]; updated_at: string };

export type Limit = { limit?: number; from: 'default' | 'set' | 'workspace'; set?: number };
export type LimitUse = { running: number; waiting: number; refused: number };
type Limits = { calls_per_second: Limit; concurrent_calls: Limit; use?: LimitUse };
export type UpstreamState = {
  origin: string;
  state: 'closed' | 'open' | 'half_open';
  calls: number;
  failures: number;
  next_attempt_at?: string;
};
export type ServerLimits = Limits & { slug: string; workspace: Limits; upstreams: UpstreamState[] };

export type KeyScope = 'manage' | 'manage:read' | 'manage:write' | 'call';
export type ApiKey = {
  id: string;
  name: string;
  scopes: KeyScope[];
  servers?: string[];
  created_at: string;
  created_by: string;
  expires_at?: string;
  last_used_at?: string;
  revoked_at?: string;
};
export type NewApiKey = ApiKey & { key: string };

export type Call = {
  id: string;
  at: string;
  server: string;
  tool: string;
  outcome: string;
  caller_kind: string;
  key_id?: string;
  upstream_host?: string;
  upstream_status?: number;
  duration_ms: number;
  upstream_ms?: number;
  bytes_in: number;
  bytes_out: number;
  request_id: string;
};

export type WireRequest = { method: string; url: string; headers: [string, string][]; body?: string };
export type Preview = { request: WireRequest; curl: string };
export type ContentBlock = { type: string; text?: string; data?: string; mimeType?: string; resource?: JsonObject };
export type Tried = {
  is_error: boolean;
  content: ContentBlock[];
  structured_content?: unknown;
  call_id?: string;
  timing?: { total_ms: number; upstream_ms?: number };
  estimated_tokens?: number;
  request?: WireRequest;
  curl?: string;
};

/** What went over the wire of a call that was captured. */
export type Capture = {
  expires_at: string;
  arguments?: JsonObject;
  arguments_bytes: number;
  request?: WireRequest;
  curl?: string;
  response?: { status: number; headers: [string, string][]; body?: string; body_bytes: number };
};
export type CallDetail = { call: Call; capture?: Capture };

export type ConnectionCheck = {
  checks: { id: string; title: string; status: 'ok' | 'warning' | 'problem'; detail: string; clients: string[] }[];
};

export type Grant = {
  id: string;
  server: string;
  client: string;
  scope: string;
  status: 'active' | 'broken' | 'revoked';
  created_at: string;
  last_used_at?: string;
};

export type AuditEvent = {
  id: string;
  at: string;
  actor_kind: string;
  actor_id: string;
  actor_name?: string;
  operation: string;
  target?: string;
  detail: JsonObject;
  request_id: string;
};

export type Member = { id: string; name?: string; email?: string; role: Role; created_at: string };
export type Invitation = { email: string; role: Role; created_at: string };
export type Activity = { slug: string; calls: number; errors: number; hourly: number[] };

type Counts = { calls: number; errors: number; p50_ms?: number; p95_ms?: number };
export type Statistics = {
  from: string;
  to: string;
  bucket_ms: number;
  buckets: (Counts & { at: string })[];
  by_server: (Counts & { slug: string })[];
  by_tool: (Counts & { slug: string; tool: string })[];
  complete: boolean;
};
