import type { Outcome } from '@toolhost/errors/errors';
import type { Generated, Selectable } from 'kysely';

/** Tables as created by `migrations/`. Times are in epoch ms. Documents are JSON text. */
export type Tables = {
  migrations: {
    name: string;
    applied_at: number;
    checksum: string;
    version: string;
    readable_by: string | null;
  };
  master_keys: {
    id: string;
    canary: string;
    sealed_mac_key: string;
    created_at: number;
    sealing_since: number | null;
    retired_at: number | null;
  };
  workspaces: {
    id: string;
    name: string;
    created_at: number;
    limits: string | null;
    quotas: string | null;
    writes_at: number | null;
    writes: number | null;
    day_writes_at: number | null;
    day_writes: number | null;
    deleted_at: number | null;
  };
  leases: { name: string; holder: string; held_until: number; done_at: Generated<number> };
  users: {
    id: string;
    issuer: string;
    subject: string;
    email: string | null;
    name: string | null;
    created_at: number;
    last_seen_at: number | null;
  };
  members: {
    workspace_id: string;
    user_id: string;
    role: string;
    role_group: string | null;
    given_role: string | null;
    created_at: number;
    selected_at: number | null;
    mail_events: string | null;
  };
  role_groups: { workspace_id: string; group_name: string; role: string };
  api_keys: {
    id: string;
    workspace_id: string;
    name: string;
    secret_hash: string;
    scopes: string;
    servers: string | null;
    created_by: string;
    created_at: number;
    expires_at: number | null;
    revoked_at: number | null;
    last_used_at: number | null;
    limits: string | null;
  };
  servers: {
    id: string;
    workspace_id: string;
    slug: string;
    name: string;
    version: number;
    created_by: string;
    created_at: number;
    updated_at: number;
    deleted_at: number | null;
    capture_until: number | null;
    limits: string | null;
    summary: string | null;
    stored_bytes: number;
    label: string | null;
    applied_version: number | null;
    copied_from: string | null;
    copied_version: number | null;
    tags: string | null;
    tool_names: string | null;
    is_public: Generated<number>;
    config: string;
  };
  server_versions: {
    server_id: string;
    workspace_id: string;
    version: number;
    config: string;
    created_by: string;
    created_at: number;
    message: string | null;
  };
  imports: {
    id: string;
    workspace_id: string;
    server_id: string;
    created_at: number;
    document_url: string | null;
    document_hash: string;
    choices: string;
    generated: string;
  };
  import_checks: {
    server_id: string;
    workspace_id: string;
    watch: string;
    due_at: number | null;
    import_id: string | null;
    checked_at: number | null;
    document_hash: string | null;
    documents: string | null;
    counts: string | null;
    failures: number;
    error: string | null;
  };
  secrets: {
    server_id: string;
    workspace_id: string;
    name: string;
    sealed_value: string;
    origins: string;
    created_by: string;
    updated_at: number;
  };
  models: {
    workspace_id: string;
    name: string;
    kind: string;
    url: string;
    model: string;
    sealed_key: string;
    created_by: string;
    updated_at: number;
  };
  client_tokens: {
    server_id: string;
    workspace_id: string;
    location: string;
    fingerprint: string;
    sealed_token: string;
    version: number;
    issued_at: number | null;
    renew_at: number | null;
    expires_at: number | null;
    requesting_until: number | null;
    retry_at: number | null;
    failures: number;
    failure: string | null;
    updated_at: number;
  };
  calls: {
    /** `callIdPrefix` followed by the request id. */
    id: string;
    workspace_id: string;
    slug: string;
    tool: string;
    started_at: number;
    caller_kind: string;
    key_id: string | null;
    upstream_host: string | null;
    upstream_status: number | null;
    outcome: Outcome;
    duration_ms: number;
    upstream_ms: number | null;
    bytes_in: number;
    bytes_out: number;
    /** Reason of the failure, without any value of the caller or the upstream; null if the call succeeded. */
    reason: string | null;
    estimated_tokens: number | null;
    view: string | null;
    /** JSON of a `RecordedModel`. */
    model: string | null;
    /** Number of requests that the call sent to the upstream; null for one or none. */
    upstream_requests: number | null;
  };
  call_counts: {
    workspace_id: string;
    width: number;
    at: number;
    slug: string;
    tool: string;
    calls: number;
    errors: number;
    /** JSON object of the duration classes that have calls: class index to number of calls. */
    durations: string;
  };
  usage_counts: {
    workspace_id: string;
    at: number;
    slug: string;
    caller: string;
    calls: number;
    errors: number;
  };
  result_chunks: {
    id: string;
    workspace_id: string;
    server_id: string;
    caller: string;
    at: number;
    chunks: number;
    characters: number;
    sealed_chunks: string;
    unverified_caller: string | null;
  };
  files: {
    id: string;
    workspace_id: string;
    server_id: string;
    address: string;
    caller: string;
    at: number;
    bytes: number;
    sealed_head: string;
    unverified_caller: string | null;
  };
  file_chunks: { file_id: string; number: number; workspace_id: string; at: number; sealed_chunk: string };
  captures: { call_id: string; workspace_id: string; server_id: string; at: number; sealed_document: string };
  webhooks: {
    id: string;
    workspace_id: string;
    origin: string;
    events: string;
    sealed_target: string;
    created_by: string;
    created_at: number;
    paused_at: number | null;
    unconfirmed: number;
  };
  notifications: {
    id: string;
    workspace_id: string;
    at: number;
    event: string;
    subject: string;
    text: string;
    dedupe: string;
    deliveries: string;
    attempts: number;
    next_at: number | null;
  };
  audit_events: {
    id: string;
    workspace_id: string;
    at: number;
    actor_kind: string;
    actor_id: string;
    operation: string;
    target: string | null;
    detail: string;
    request_id: string;
  };
  changes: {
    id: string;
    at: number;
    kind: 'server' | 'key' | 'grant' | 'workspace';
    ref: string;
    position: number;
  };
  processes: {
    id: string;
    version: string;
    host: string;
    pid: number;
    started_at: number;
    seen_at: number;
    clock_at: number;
    master_keys: string;
  };
  call_quota_use: {
    kind: string;
    ref: string;
    span: 'minute' | 'day';
    starts_at: number;
    calls: number;
    quota: number;
    granted: number;
  };
  sessions: { hash: string; user_id: string; workspace_id: string; created_at: number; expires_at: number };
  sign_in_links: { hash: string; expires_at: number };
  invitations: { workspace_id: string; email: string; role: string; invited_by: string; created_at: number };
  authorizations: {
    id: string;
    workspace_id: string;
    server_id: string;
    consent_id: string;
    client_id: string;
    client_name: string;
    redirect_uri: string;
    code_challenge: string;
    scope: string;
    binding_hash: string;
    sealed_verifier: string;
    created_at: number;
    expires_at: number;
  };
  grants: {
    id: string;
    workspace_id: string;
    server_id: string;
    slug: string;
    client_id: string;
    client_name: string;
    user_id: string | null;
    person: string | null;
    person_id: string | null;
    scope: string;
    agreement: string;
    sealed_tokens: string;
    tokens_version: number;
    refreshing_until: number | null;
    generation: number;
    rotated_at: number;
    created_at: number;
    last_used_at: number | null;
    broken_at: number | null;
    revoked_at: number | null;
    missing_scope: string | null;
    challenged_at: number | null;
  };
  person_values: {
    server_id: string;
    user_id: string;
    workspace_id: string;
    agreement: string;
    sealed_values: string;
    names: string;
    refused: string | null;
    version: number;
    updated_at: number;
  };
  codes: {
    hash: string;
    grant_id: string;
    client_id: string;
    redirect_uri: string;
    code_challenge: string;
    wrapped_key: string;
    expires_at: number;
    used_at: number | null;
  };
  passthrough_tokens: {
    server_id: string;
    hash: string;
    agreement: string;
    expires_at: number;
    missing_scope: string | null;
    challenged_at: number | null;
  };
  tokens: {
    hash: string;
    grant_id: string;
    kind: 'access' | 'refresh';
    generation: number;
    wrapped_key: string;
    expires_at: number;
  };
};

/** Finished call to be recorded. The ID of its server is not stored, because records name the server by its slug. */
export type CallRow = Selectable<Tables['calls']> & { server_id: string };
