-- All database tables, in one text for SQLite and PostgreSQL: ids are text, times are bigint milliseconds, flags are
-- smallint, documents are JSON in text. Every list is read in pages, in index order. An index on the time or the end of
-- rows finds expired rows. Tokens, codes, states, and cookies are stored only as SHA-256.

-- Tenants of the service. Everything else belongs to a workspace.
create table workspaces (
  -- Starts with the id of the person who created it. The first 26 characters identify the tenant (`packages/credentials/src/ids.ts`).
  id text primary key,
  name text not null,
  created_at bigint not null,
  -- Call limits that the operator set; null if the defaults apply. JSON, such as
  -- {"callsPerSecond":100,"concurrentCalls":80}.
  limits text,
  -- Quotas that the operator set in place of the defaults. JSON, such as {"servers":2000}.
  quotas text,
  -- Minute of the last change, in epoch ms, and the number of changes stored in it. The same for its day.
  writes_at bigint,
  writes bigint,
  day_writes_at bigint,
  day_writes bigint,
  -- Time of deletion. Of a deleted workspace, only the slugs of its servers remain reserved.
  deleted_at bigint
);
create index workspaces_by_end on workspaces (deleted_at) where deleted_at is not null;
create index workspaces_by_tenant on workspaces (substr(id, 1, 26));

-- People who have signed in to the dashboard, as identified by their identity provider.
create table users (
  id text primary key,
  issuer text not null,
  subject text not null,
  email text,
  name text,
  created_at bigint not null,
  last_seen_at bigint,
  unique (issuer, subject)
);
create index users_by_visit on users (last_seen_at);

-- Members of workspaces, with their roles.
create table members (
  workspace_id text not null references workspaces (id),
  user_id text not null references users (id),
  role text not null,
  -- Group of the identity provider that the role comes from, and the role that a member gave, which applies again
  -- without the group. Both are null if a member gave the role.
  role_group text,
  given_role text,
  created_at bigint not null,
  -- Time when the person last switched to the workspace; null if never. The next sign-in starts in the most recent one.
  selected_at bigint,
  -- Events that the person is notified of by email: a JSON array; null if none.
  mail_events text,
  primary key (workspace_id, user_id)
);
create index members_with_mail on members (workspace_id) where mail_events is not null;
create index members_in_order on members (workspace_id, created_at, user_id);
create index members_by_user on members (user_id, created_at);

-- Roles that members of a workspace have while the identity provider states a group for them.
create table role_groups (
  workspace_id text not null references workspaces (id),
  -- Exact value of the claim that OIDC_GROUPS_CLAIM names.
  group_name text not null,
  role text not null,
  primary key (workspace_id, group_name)
);

-- Invitations to a workspace. An invitation waits until a person signs in with this verified email address.
create table invitations (
  workspace_id text not null references workspaces (id),
  -- Lowercase.
  email text not null,
  role text not null,
  invited_by text not null,
  created_at bigint not null,
  primary key (workspace_id, email)
);
create index invitations_in_order on invitations (workspace_id, created_at, email);
create index invitations_by_email on invitations (email);
create index invitations_by_time on invitations (created_at);

-- Dashboard sessions of people.
create table sessions (
  -- Hash of the cookie.
  hash text primary key,
  user_id text not null references users (id),
  workspace_id text not null references workspaces (id),
  created_at bigint not null,
  expires_at bigint not null
);
create index sessions_by_user on sessions (user_id);
create index sessions_by_expiry on sessions (expires_at);

-- Unused links that sign the person of local mode in.
create table sign_in_links (
  -- Hash of the secret in the link.
  hash text primary key,
  expires_at bigint not null
);
create index sign_in_links_by_expiry on sign_in_links (expires_at);

-- Keys of programs and agents, for calls and for management.
create table api_keys (
  id text primary key,
  workspace_id text not null references workspaces (id),
  name text not null,
  secret_hash text not null,
  scopes text not null,
  -- JSON array of slugs, and of slugs with a view, that the key is limited to; null for every server in the workspace.
  servers text,
  created_by text not null,
  created_at bigint not null,
  expires_at bigint,
  revoked_at bigint,
  last_used_at bigint,
  -- Limits of this key. JSON, such as {"callsPerSecond":5,"callsPerDay":1000}; null if there are none.
  limits text
);
create index api_keys_in_order on api_keys (workspace_id, created_at, id);
create index api_keys_in_use on api_keys (workspace_id, expires_at) where revoked_at is null;
-- Finds the keys that a person created, when the person leaves a workspace.
create index api_keys_by_maker on api_keys (workspace_id, created_by);
create index api_keys_by_end on api_keys (revoked_at) where revoked_at is not null;
create index api_keys_by_expiry on api_keys (expires_at) where expires_at is not null;

-- Hosted servers. A deleted server can be restored for 30 days. After that, it remains as a tombstone, so that no one
-- can take over its slug and the people who trust it.
create table servers (
  id text primary key,
  workspace_id text not null references workspaces (id),
  slug text not null unique,
  name text not null,
  version bigint not null,
  created_by text not null,
  created_at bigint not null,
  updated_at bigint not null,
  deleted_at bigint,
  -- Time until which its calls are captured; null if they never were.
  capture_until bigint,
  -- Call limits set by the people who manage the server; null if the defaults apply.
  limits text,
  -- Summary for lists, so that no list reads whole configurations (JSON); null for a tombstone.
  summary text,
  -- Size of the configuration, its stored versions, and its imports, in bytes.
  stored_bytes bigint not null,
  -- State of `toolhost apply`; null if the server was never applied. The label is the set of files that the server
  -- belongs to, so that only servers of this set are pruned. Versions after the one that was applied last were made
  -- elsewhere, and are not overwritten silently.
  label text,
  applied_version bigint,
  -- Server that it was duplicated from, and its version; null if it is not a duplicate.
  copied_from text,
  copied_version bigint,
  -- Tags that people assign to organize their servers: an ordered JSON array, or null.
  tags text,
  -- Tool names in their searchable form, so that no search reads configurations; null for a tombstone.
  tool_names text,
  -- 1 if the configuration has `public: true`, so that the catalog reads no configuration.
  is_public bigint not null default 0,
  -- Configuration with every secret masked. It is the last column, because SQLite reads a long row from its beginning.
  config text not null
);
create index servers_in_use on servers (workspace_id, created_at, id) where deleted_at is null;
-- The response to a wrong slug lists the nearest slugs of the workspace. No search needs the tombstones.
create index servers_by_slug on servers (workspace_id, slug);
create index servers_in_use_by_slug on servers (workspace_id, slug) where deleted_at is null;
-- Deleted servers that can be restored, and servers that are not tombstones.
create index servers_deleted on servers (workspace_id, deleted_at, id) where deleted_at is not null and summary is not null;
create index servers_kept_by_slug on servers (workspace_id, slug) where summary is not null;
create index servers_by_size on servers (workspace_id, deleted_at, stored_bytes);
-- Finds the servers that a person created, when the person leaves a workspace.
create index servers_by_maker on servers (workspace_id, created_by) where deleted_at is null;
-- The catalog of public servers.
create index servers_public on servers (slug) where is_public = 1 and deleted_at is null;
create index servers_by_original on servers (copied_from) where copied_from is not null;

-- Stored versions of each configuration, including the current one.
create table server_versions (
  server_id text not null references servers (id),
  workspace_id text not null references workspaces (id),
  version bigint not null,
  config text not null,
  created_by text not null,
  created_at bigint not null,
  -- Description by a person or an agent.
  message text,
  primary key (server_id, version)
);
create index server_versions_by_age on server_versions (workspace_id, created_at);

-- Secrets of hosted servers, which their configurations name.
create table secrets (
  server_id text not null references servers (id),
  workspace_id text not null references workspaces (id),
  name text not null,
  sealed_value text not null,
  -- JSON array of the origins that this value may be sent to: the origins of the server when the value was set.
  origins text not null,
  created_by text not null,
  updated_at bigint not null,
  primary key (server_id, name)
);
create index secrets_by_maker on secrets (workspace_id, created_by);

-- Models that people of a workspace use in the playground.
create table models (
  workspace_id text not null references workspaces (id),
  name text not null,
  kind text not null,
  url text not null,
  model text not null,
  -- Empty for a model that needs no key.
  sealed_key text not null,
  created_by text not null,
  updated_at bigint not null,
  primary key (workspace_id, name)
);

-- Access tokens that the service itself obtains for a hosted server with client credentials (RFC 6749, 4.4).
create table client_tokens (
  server_id text not null,
  workspace_id text not null,
  -- Destination of the token, such as header:authorization. Each entry of authentication has its own location.
  location text not null,
  -- MAC of all parameters of the token request. A different MAC means a different request.
  fingerprint text not null,
  -- Empty before the first token.
  sealed_token text not null,
  -- Counts tokens and failures, so that a change by another process is detected.
  version bigint not null,
  -- Times when the token was issued, is to be renewed, and expires. A token may have no stated expiry.
  issued_at bigint,
  renew_at bigint,
  expires_at bigint,
  -- Claim of the process that is currently requesting a token.
  requesting_until bigint,
  -- Time before which no process retries after a failure.
  retry_at bigint,
  failures bigint not null,
  failure text,
  updated_at bigint not null,
  primary key (server_id, location)
);
create index client_tokens_by_update on client_tokens (updated_at);

-- Sources of imported servers. They allow a re-import to distinguish edits by people from changes of the document.
create table imports (
  -- Named in the configuration, so that each version of it names the import that it is based on.
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  created_at bigint not null,
  document_url text,
  -- SHA-256 of the document.
  document_hash text not null,
  -- Import options (JSON).
  choices text not null,
  -- Server as generated, before any edit (JSON).
  generated text not null
);
create index imports_by_server on imports (server_id, created_at);

-- Watching of the description that a server was imported from, and the result of its last check.
create table import_checks (
  server_id text primary key,
  workspace_id text not null,
  -- 'daily' or 'never'.
  watch text not null,
  -- Time of the next check; null while the description is not watched.
  due_at bigint,
  -- Imports that the other columns refer to, separated by spaces.
  import_id text,
  checked_at bigint,
  -- SHA-256 of the fetched documents, separated by spaces.
  document_hash text,
  -- URL, ETag, modification time, and counts of each document by its import (JSON), to fetch only changed documents.
  documents text,
  -- Counts of what a re-import would change (JSON).
  counts text,
  -- Number of consecutive failed checks, and the reason of the last failure.
  failures bigint not null,
  error text
);
create index import_checks_due on import_checks (due_at) where due_at is not null;
create index import_checks_watched on import_checks (workspace_id) where due_at is not null;

-- Logins in progress in the OAuth proxy: created when a person has consented, removed at the callback.
create table authorizations (
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  -- Consent that it came from. A consent form counts once.
  consent_id text not null unique,
  client_id text not null,
  client_name text not null,
  redirect_uri text not null,
  code_challenge text not null,
  scope text not null,
  -- Hash of the cookie of the browser that consented.
  binding_hash text not null,
  sealed_verifier text not null,
  created_at bigint not null,
  expires_at bigint not null
);
create index authorizations_by_expiry on authorizations (expires_at);

-- Results of finished logins. The provider's tokens are sealed with a key of the grant, which only the issued tokens
-- can unwrap, and then with the master key.
create table grants (
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  slug text not null,
  client_id text not null,
  client_name text not null,
  user_id text,
  -- Person who logged in, as named by the provider; removed when the grant ends.
  person text,
  -- User whom the identity provider of this service identified at a hosted server. user_id is for the management server.
  person_id text,
  scope text not null,
  -- Hosts and endpoints that the person agreed to. Other hosts or endpoints void the grant.
  agreement text not null,
  sealed_tokens text not null,
  -- Counts the provider's refreshes, so that a superseded refresh is detected.
  tokens_version bigint not null,
  refreshing_until bigint,
  -- Counts the rotations of the issued refresh token.
  generation bigint not null,
  rotated_at bigint not null,
  created_at bigint not null,
  last_used_at bigint,
  broken_at bigint,
  revoked_at bigint,
  -- Scopes that the upstream last reported as missing, and when the client was told to log in with them.
  missing_scope text,
  challenged_at bigint
);
create index grants_in_order on grants (workspace_id, created_at, id);
create index grants_by_slug on grants (workspace_id, slug, created_at, id);
create index grants_by_server on grants (server_id);
create index grants_by_user on grants (user_id);
-- Grants of a server, and of a person, that have not ended, among very many that have.
create index grants_in_use on grants (workspace_id, server_id, slug) where revoked_at is null;
create index grants_in_use_by_user on grants (user_id) where revoked_at is null;
create index grants_in_use_by_person on grants (person_id, server_id) where revoked_at is null;
-- Unverified callers may cause the query if a client ever logged in at a server, which may have very many grants. The
-- ids of clients with a metadata document are this short. Longer ids would not fit into a PostgreSQL index.
create index grants_by_client on grants (server_id, client_id) where length(client_id) <= 1000;
create index grants_by_end on grants (revoked_at) where revoked_at is not null;
create index grants_by_challenge on grants (server_id, challenged_at) where challenged_at is not null;
create index grants_by_break on grants (workspace_id, broken_at) where broken_at is not null;
-- Bytes of logins, which maintenance sums for each workspace. The rows themselves are long. The length is the first
-- column, so that no query for the logins of a workspace uses this index.
create index grants_by_bytes on grants (
  (octet_length(sealed_tokens) + 2 * octet_length(client_id) + octet_length(scope) + 500),
  workspace_id,
  revoked_at,
  user_id
);

-- Authorization codes, which an agent redeems once after its login.
create table codes (
  hash text primary key,
  grant_id text not null references grants (id),
  client_id text not null,
  redirect_uri text not null,
  code_challenge text not null,
  wrapped_key text not null,
  expires_at bigint not null,
  used_at bigint
);
create index codes_by_grant on codes (grant_id);
create index codes_by_expiry on codes (expires_at);

-- Access and refresh tokens that the OAuth proxy issued to agents.
create table tokens (
  hash text primary key,
  grant_id text not null references grants (id),
  kind text not null,
  generation bigint not null,
  wrapped_key text not null,
  expires_at bigint not null
);
create index tokens_by_grant on tokens (grant_id);
create index tokens_by_expiry on tokens (expires_at);

-- Values that people bring to a server, such as an API key of their own.
create table person_values (
  server_id text not null,
  user_id text not null,
  workspace_id text not null,
  -- Hash of the fields and hosts that the person agreed to. Values under another agreement are not sent.
  agreement text not null,
  sealed_values text not null,
  -- Names of the values, and of those that the API refused, as JSON lists. The second is null if there are none.
  names text not null,
  refused text,
  version bigint not null,
  updated_at bigint not null,
  primary key (server_id, user_id)
);
create index person_values_by_user on person_values (user_id, workspace_id);

-- Hashes of provider tokens that were passed to agents unchanged (passthrough), with the person's agreement at that
-- time.
create table passthrough_tokens (
  server_id text not null,
  -- SHA-256 of the token.
  hash text not null,
  agreement text not null,
  expires_at bigint not null,
  -- As in grants.
  missing_scope text,
  challenged_at bigint,
  primary key (server_id, hash)
);
create index passthrough_tokens_by_challenge on passthrough_tokens (server_id, challenged_at)
  where challenged_at is not null;
create index passthrough_tokens_by_agreement on passthrough_tokens (server_id, agreement);
create index passthrough_tokens_by_expiry on passthrough_tokens (expires_at);

-- Call records.
create table calls (
  -- "call_" and the request id. The ids of a process are sequential, so a new row is near the last one.
  id text primary key,
  workspace_id text not null,
  slug text not null,
  tool text not null,
  started_at bigint not null,
  caller_kind text not null,
  key_id text,
  upstream_host text,
  upstream_status bigint,
  outcome text not null,
  duration_ms bigint not null,
  upstream_ms bigint,
  bytes_in bigint not null,
  bytes_out bigint not null,
  -- Reason of a failure, without any value of the caller or the upstream; null for a successful call.
  reason text,
  -- Estimated tokens of the result.
  estimated_tokens bigint,
  -- View of the server at whose URL the call was made; null for the server's own URL.
  view text,
  -- Name and token counts of the model, for a question to a model: JSON; null for a tool call.
  model text,
  -- Number of requests that the call sent to the upstream; null for one or none.
  upstream_requests bigint
);
-- One index lists the calls of a workspace. Other conditions are searched among them. Indexes of servers, keys, and
-- outcomes took nine tenths of the write time, because each of their entries belongs to a different page.
create index calls_by_workspace on calls (workspace_id, started_at, id);
-- Maintenance deletes by time across all workspaces. New rows are added at the end of this index, where an entry costs
-- next to nothing.
create index calls_by_time on calls (started_at);

-- Number of calls that started in a minute or a day, counted when their records are written, so that no report reads
-- every record. There are counts for each tool, and for all tools of the workspace together, with empty slug and tool.
create table call_counts (
  workspace_id text not null,
  -- Length of the period in ms, and its start.
  width bigint not null,
  at bigint not null,
  slug text not null,
  tool text not null,
  calls integer not null,
  errors integer not null,
  -- Distribution of durations: a JSON object from the number of a duration class to its calls, for classes that have
  -- calls.
  durations text not null,
  primary key (workspace_id, width, slug, at, tool)
);
create index call_counts_in_order on call_counts (workspace_id, width, at);
-- Finds a tool in all servers of a workspace.
create index call_counts_by_tool on call_counts (workspace_id, tool, width, at);
create index call_counts_by_time on call_counts (width, at);

-- Number of calls of a server by each caller on a day (UTC), counted with their records.
create table usage_counts (
  workspace_id text not null,
  at bigint not null,
  slug text not null,
  -- Id of an API key. For any other caller, its kind, because there may be very many.
  caller text not null,
  calls bigint not null,
  errors bigint not null,
  primary key (workspace_id, at, slug, caller)
);
create index usage_counts_by_time on usage_counts (at);

-- Exchanges with the upstream, stored with call records while the owner of the server has capturing enabled.
create table captures (
  call_id text primary key,
  workspace_id text not null,
  server_id text not null,
  -- Start of the call.
  at bigint not null,
  -- Sealed JSON: arguments, the request with its credentials masked, and the start of the response.
  sealed_document text not null
);
create index captures_by_workspace on captures (workspace_id, at);
create index captures_by_server on captures (server_id, at);
create index captures_by_time on captures (at);

-- Remainders of results that were truncated to the limit of their tool, for the few minutes in which an agent may
-- continue to read.
create table result_chunks (
  -- Id of the result, and the number of the first chunk in this row.
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  -- Digest of the caller's identity.
  caller text not null,
  at bigint not null,
  -- Number of chunks of the whole remainder, in all rows.
  chunks bigint not null,
  characters bigint not null,
  sealed_chunks text not null,
  -- Keyed digest of the address of an unverified caller; null for every other caller.
  unverified_caller text
);
create index result_chunks_by_workspace on result_chunks (workspace_id, at);
create index result_chunks_by_time on result_chunks (at);

-- Files in results that are too large for a tool result, for the few minutes in which their URL is valid.
create table files (
  -- Digest of the id in the URL of the file.
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  -- Slug, or slug and view, of the server as the caller sees it.
  address text not null,
  -- Digest of the caller's identity.
  caller text not null,
  at bigint not null,
  bytes bigint not null,
  -- Name and media type (JSON).
  sealed_head text not null,
  -- Keyed digest of the address of an unverified caller; null for every other caller.
  unverified_caller text
);
create index files_by_workspace on files (workspace_id, at);
create index files_by_time on files (at);

-- Bytes of these files, in chunks of equal size. The last chunk may be shorter.
create table file_chunks (
  file_id text not null,
  number bigint not null,
  workspace_id text not null,
  at bigint not null,
  sealed_chunk text not null,
  primary key (file_id, number)
);
create index file_chunks_by_workspace on file_chunks (workspace_id, at);
create index file_chunks_by_time on file_chunks (at);

-- Number of calls that all processes together took from a quota in one minute or one day (UTC).
create table call_quota_use (
  -- Owner of the quota and its id: server, workspace, key, or unverified (the unverified callers, half of a server's or
  -- workspace's quota).
  kind text not null,
  ref text not null,
  -- minute or day
  span text not null,
  -- Start of the minute or day, in epoch ms.
  starts_at bigint not null,
  calls bigint not null,
  -- Quota, and the number of calls granted, at the last request of a process.
  quota bigint not null,
  granted bigint not null,
  primary key (kind, ref, span, starts_at)
);
create index call_quota_use_by_start on call_quota_use (span, starts_at);

-- Webhooks that are notified of events in a workspace.
create table webhooks (
  id text primary key,
  workspace_id text not null,
  -- Scheme, host, and port of the URL. The rest of it may be a secret, as with chat services.
  origin text not null,
  -- JSON array of the events that the webhook is notified of.
  events text not null,
  -- URL, and the signing secret (JSON).
  sealed_target text not null,
  -- User who set the URL. For an API key, the person who owns the key.
  created_by text not null,
  created_at bigint not null,
  -- Time since which the webhook receives no events; null while it is active.
  paused_at bigint,
  -- 1 while the webhook waits for confirmation by a member, because the access of its creator ended.
  unconfirmed smallint not null
);
create index webhooks_by_workspace on webhooks (workspace_id, created_at, id);

-- Notifications that were sent to a workspace, or will be sent when a failed recipient responds.
create table notifications (
  id text primary key,
  workspace_id text not null,
  at bigint not null,
  event text not null,
  -- Slug of a server, id of a key, or name of a quota.
  subject text not null,
  text text not null,
  -- Events with the same key cause only one notification.
  dedupe text not null,
  -- Recipients, and the state of each delivery (JSON).
  deliveries text not null,
  attempts bigint not null,
  -- Time of the next attempt for pending deliveries; null if none is pending.
  next_at bigint,
  unique (workspace_id, dedupe)
);
create index notifications_in_order on notifications (workspace_id, at, id);
create index notifications_due on notifications (next_at) where next_at is not null;
create index notifications_by_time on notifications (at);

-- Audit log: who changed what in a workspace.
create table audit_events (
  id text primary key,
  workspace_id text not null,
  at bigint not null,
  actor_kind text not null,
  actor_id text not null,
  operation text not null,
  target text,
  detail text not null,
  request_id text not null
);
create index audit_events_by_workspace on audit_events (workspace_id, at, id);
create index audit_events_by_time on audit_events (at);

-- Recent changes, written in the same transaction as the change. Replicas poll them to invalidate their caches.
create table changes (
  id text primary key,
  at bigint not null,
  kind text not null,
  ref text not null,
  -- Position of the change among all changes, assigned by the database.
  position bigint not null
);
create index changes_by_position on changes (position);
create index changes_by_time on changes (at);

-- Processes that serve from this database. Each sends a heartbeat every second. `seen_at` is the database time.
create table processes (
  id text primary key,
  version text not null,
  host text not null,
  pid bigint not null,
  started_at bigint not null,
  seen_at bigint not null,
  -- Clock of the process at that time, so that the others can determine whose clock is wrong.
  clock_at bigint not null,
  -- Ids of the master keys that the process can open values with, comma-separated.
  master_keys text not null
);

-- Leases for work that only one process of a service does at a time, with the time until which the holder has them.
create table leases (
  name text primary key,
  holder text not null,
  held_until bigint not null,
  -- Time when the work was last completed, in epoch ms; 0 before.
  done_at bigint not null default 0
);

-- Master keys that seal values in this database, by id. The keys themselves are never stored.
create table master_keys (
  -- Start of a hash of the key, as used in sealed values.
  id text primary key,
  -- Known text sealed with the key. A key that cannot open it is a different key.
  canary text not null,
  -- Part of the key that proves who issued the client ids of agents. It outlives the master key, sealed with a newer
  -- one.
  sealed_mac_key text not null,
  created_at bigint not null,
  -- Time when a process last started to seal with this key. Every process must have the key with the latest time.
  sealing_since bigint,
  -- Time since which no value is sealed with the key, so that it may be removed.
  retired_at bigint
);
