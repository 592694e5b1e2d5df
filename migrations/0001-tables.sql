-- Every table of the database, in one text for SQLite and PostgreSQL: ids text, times bigint milliseconds, flags smallint,
-- documents JSON in text. Every list is read in pages, in the order of an index. An index on the time or the end of rows
-- finds those that have had their time. Tokens, codes, states and cookies are stored as SHA-256 alone.

-- The tenants of the service: everything else belongs to one of them.
create table workspaces (
  -- Begins with the id of the person who created it: the first 26 characters name the tenant (`src/domain/ids.ts`).
  id text primary key,
  name text not null,
  created_at bigint not null,
  -- Limits of calls that the operator set; null where the defaults count. JSON, such as {"callsPerSecond":100,"concurrentCalls":80}.
  limits text,
  -- What the operator allows the workspace instead of the default; JSON such as {"servers":2000}.
  quotas text,
  -- The minute of the last change, in epoch ms, and how many changes were stored in it; the same of its day.
  writes_at bigint,
  writes bigint,
  day_writes_at bigint,
  day_writes bigint,
  -- Of a deleted one only the slugs of its servers stay reserved.
  deleted_at bigint
);
create index workspaces_by_end on workspaces (deleted_at) where deleted_at is not null;
create index workspaces_by_tenant on workspaces (substr(id, 1, 26));

-- People who have signed in to the dashboard, as their identity provider names them.
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

-- Which people belong to which workspace, and as what.
create table members (
  workspace_id text not null references workspaces (id),
  user_id text not null references users (id),
  role text not null,
  created_at bigint not null,
  -- When the person last switched to the workspace; null where they never did. Their next sign-in starts in the last one.
  chosen_at bigint,
  -- What the person is told of by mail: a JSON array of events; null where they are told of nothing.
  told text,
  primary key (workspace_id, user_id)
);
create index members_told on members (workspace_id) where told is not null;
create index members_in_order on members (workspace_id, created_at, user_id);
create index members_by_user on members (user_id, created_at);

-- Who was asked to join a workspace: an invitation waits until somebody signs in with that verified address.
create table invitations (
  workspace_id text not null references workspaces (id),
  -- In lower case.
  email text not null,
  role text not null,
  invited_by text not null,
  created_at bigint not null,
  primary key (workspace_id, email)
);
create index invitations_in_order on invitations (workspace_id, created_at, email);
create index invitations_by_email on invitations (email);
create index invitations_by_time on invitations (created_at);

-- Sessions of people in the dashboard.
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

-- Keys of programs and agents, for calls and for managing.
create table api_keys (
  id text primary key,
  workspace_id text not null references workspaces (id),
  name text not null,
  secret_hash text not null,
  scopes text not null,
  -- JSON array of slugs, and of slugs with a view, that the key is limited to, or null for every server of the workspace.
  servers text,
  created_by text not null,
  created_at bigint not null,
  expires_at bigint,
  revoked_at bigint,
  last_used_at bigint,
  -- Limits of this key: JSON, such as {"callsPerSecond":5,"callsPerDay":1000}; null where there are none.
  limits text
);
create index api_keys_in_order on api_keys (workspace_id, created_at, id);
create index api_keys_in_use on api_keys (workspace_id, expires_at) where revoked_at is null;
-- Which keys a person made is asked when they leave a workspace.
create index api_keys_by_maker on api_keys (workspace_id, created_by);
create index api_keys_by_end on api_keys (revoked_at) where revoked_at is not null;
create index api_keys_by_expiry on api_keys (expires_at) where expires_at is not null;

-- Hosted servers. A deleted one can be restored for 30 days. Then it stays as a tombstone, so that nobody can take over
-- its slug and the people who trust it.
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
  -- Until when its calls are captured; null when they never were.
  capture_until bigint,
  -- Limits of calls that those who manage it set; null where the defaults count.
  limits text,
  -- What lists show of it, so that no list reads whole configurations (JSON); null of a tombstone.
  summary text,
  -- Size of the configuration, its kept versions and its imports, in bytes.
  stored_bytes bigint not null,
  -- What `toolhost apply` keeps about it; null where it was never applied. The set of files that it belongs to, so that
  -- only servers of this set are pruned, and the version that was applied last: later ones were made elsewhere, and are
  -- not overwritten silently.
  label text,
  applied_version bigint,
  -- The server that it was duplicated from, and which version; null where it was not.
  copied_from text,
  copied_version bigint,
  -- Words that people sort their servers by: a JSON array in order, or null.
  tags text,
  -- The names of its tools as they are searched, so that no search reads configurations; null of a tombstone.
  tool_names text,
  -- The configuration with every secret masked. It comes last: SQLite reads a long row from its beginning.
  config text not null
);
create index servers_in_use on servers (workspace_id, created_at, id) where deleted_at is null;
-- A wrong slug is answered with the nearest ones of the workspace. Nobody looks for one among the tombstones.
create index servers_by_slug on servers (workspace_id, slug);
create index servers_in_use_by_slug on servers (workspace_id, slug) where deleted_at is null;
-- Deleted ones that can be restored, and those that are no tombstones.
create index servers_deleted on servers (workspace_id, deleted_at, id) where deleted_at is not null and summary is not null;
create index servers_kept_by_slug on servers (workspace_id, slug) where summary is not null;
create index servers_by_size on servers (workspace_id, deleted_at, stored_bytes);
-- What a person made is asked when they leave a workspace.
create index servers_by_maker on servers (workspace_id, created_by) where deleted_at is null;
create index servers_by_original on servers (copied_from) where copied_from is not null;

-- The kept versions of each configuration, the current one among them.
create table server_versions (
  server_id text not null references servers (id),
  workspace_id text not null references workspaces (id),
  version bigint not null,
  config text not null,
  created_by text not null,
  created_at bigint not null,
  -- What a person or an agent says of it.
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
  -- JSON array of the origins this value may be sent to: those of the server when the value was set.
  origins text not null,
  created_by text not null,
  updated_at bigint not null,
  primary key (server_id, name)
);
create index secrets_by_maker on secrets (workspace_id, created_by);

-- Models that the people of a workspace ask in the playground.
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

-- Access tokens that the service itself gets for a hosted server with client credentials (RFC 6749, 4.4).
create table client_tokens (
  server_id text not null,
  workspace_id text not null,
  -- Where the token is sent, such as header:authorization; an entry of authentication has one of its own.
  location text not null,
  -- A MAC of everything that the token was asked for with; another one means another request.
  fingerprint text not null,
  -- Empty before the first token.
  sealed_token text not null,
  -- Counts tokens and refusals, so that a change by another process is noticed.
  version bigint not null,
  -- When it was given, when it is to be renewed, and when it ends; a token may have no stated end.
  given_at bigint,
  renew_at bigint,
  expires_at bigint,
  -- The claim of the process that asks for a token at this moment.
  requesting_until bigint,
  -- After a failure nobody asks again before this time.
  retry_at bigint,
  failures bigint not null,
  failure text,
  updated_at bigint not null,
  primary key (server_id, location)
);
create index client_tokens_by_update on client_tokens (updated_at);

-- What a server was imported from, so that importing again can tell edits of people from changes of the document.
create table imports (
  -- Named in the configuration, so each version of it names the import that it is based on.
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  created_at bigint not null,
  document_url text,
  -- SHA-256 of the document.
  document_hash text not null,
  -- How it was imported (JSON).
  choices text not null,
  -- The server as it was generated, before any edit (JSON).
  generated text not null
);
create index imports_by_server on imports (server_id, created_at);

-- Whether the description that a server was imported from is watched, and what the last check of it found.
create table import_checks (
  server_id text primary key,
  workspace_id text not null,
  -- 'daily' or 'never'.
  watch text not null,
  -- When the description is checked next; null while it is not watched.
  due_at bigint,
  -- The import that the other columns are about.
  import_id text,
  checked_at bigint,
  -- SHA-256 of the document that was found.
  document_hash text,
  -- Its address, ETag and time of change (JSON), to fetch it only when it has changed.
  validators text,
  -- What importing it again would change, in numbers (JSON).
  counts text,
  -- Checks in a row that failed, and why the last one did.
  failures bigint not null,
  error text
);
create index import_checks_due on import_checks (due_at) where due_at is not null;
create index import_checks_watched on import_checks (workspace_id) where due_at is not null;

-- Logins in flight of the OAuth proxy: made when a person has consented, gone at the callback.
create table authorizations (
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  -- The consent that it came from; a consent form counts once.
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

-- What a finished login left. The provider's tokens are sealed with a key of the grant, which only our own tokens can
-- unwrap, and then with the master key.
create table grants (
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  slug text not null,
  client_id text not null,
  client_name text not null,
  user_id text,
  -- Who logged in, as the provider named them; gone when the grant ends.
  person text,
  scope text not null,
  -- Hosts and endpoints that the person agreed to; other ones void the grant.
  agreement text not null,
  sealed_tokens text not null,
  -- Counts the provider's refreshes, so that one that was overtaken is noticed.
  tokens_version bigint not null,
  refreshing_until bigint,
  -- Counts the rotations of our refresh token.
  generation bigint not null,
  rotated_at bigint not null,
  created_at bigint not null,
  last_used_at bigint,
  broken_at bigint,
  revoked_at bigint
);
create index grants_in_order on grants (workspace_id, created_at, id);
create index grants_by_slug on grants (workspace_id, slug, created_at, id);
create index grants_by_server on grants (server_id);
create index grants_by_user on grants (user_id);
-- The grants of a server, and of a person, that have not ended, among very many that have.
create index grants_in_use on grants (workspace_id, server_id, slug) where revoked_at is null;
create index grants_in_use_by_user on grants (user_id) where revoked_at is null;
-- Strangers ask whether a client ever logged in at a server, which may have very many grants. The ids of clients with a
-- metadata document are this short; longer ones would not fit in an index of PostgreSQL.
create index grants_by_client on grants (server_id, client_id) where length(client_id) <= 1000;
create index grants_by_end on grants (revoked_at) where revoked_at is not null;
create index grants_by_break on grants (workspace_id, broken_at) where broken_at is not null;
-- The bytes of logins, which upkeep sums up for each workspace: the rows themselves are long. The length is the first
-- column, so that no query for the logins of a workspace takes this index for its own.
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

-- Access and refresh tokens that agents got from the OAuth proxy.
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

-- Tokens of providers that went to agents as they are (passthrough), by their hashes: what the person had agreed to then.
create table handed_out_tokens (
  server_id text not null,
  -- SHA-256 of the token.
  hash text not null,
  agreement text not null,
  expires_at bigint not null,
  primary key (server_id, hash)
);
create index handed_out_tokens_by_agreement on handed_out_tokens (server_id, agreement);
create index handed_out_tokens_by_expiry on handed_out_tokens (expires_at);

-- Records of calls.
create table calls (
  -- "call_" and the id of the request. Those of a process come one after the other, so a new one is near the last.
  id text primary key,
  workspace_id text not null,
  server_id text not null,
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
  -- Why a call failed, without any value of the caller or the upstream; null for a call that succeeded.
  reason text,
  -- Estimated tokens of the answer.
  estimated_tokens bigint,
  -- The view of the server at whose address it was made; null for the server's own address.
  view text,
  -- Name and tokens of the model that a question was for: JSON; null for a call of a tool.
  model text,
  -- Requests that it sent to the upstream; null for one or none.
  upstream_requests bigint
);
-- One index lists the calls of a workspace; what is asked for besides is looked for among them. Indexes of servers, keys
-- and outcomes took nine tenths of the time of writing, because every entry belongs to another page of them.
create index calls_by_workspace on calls (workspace_id, started_at, id);
-- Upkeep deletes by time over all workspaces. New rows come at its end, where an entry costs next to nothing.
create index calls_by_time on calls (started_at);

-- How many calls began in a minute or a day, counted when their records are written, so that no report reads every
-- record: of each tool, and of all tools of the workspace together, where slug and tool are empty.
create table call_counts (
  workspace_id text not null,
  -- Length of the time in ms, and its start.
  width bigint not null,
  at bigint not null,
  slug text not null,
  tool text not null,
  calls integer not null,
  errors integer not null,
  -- How many took how long: a JSON object of the classes of durations that have calls, by their number.
  durations text not null,
  primary key (workspace_id, width, slug, at, tool)
);
create index call_counts_in_order on call_counts (workspace_id, width, at);
-- A tool is asked for in all servers of a workspace.
create index call_counts_by_tool on call_counts (workspace_id, tool, width, at);
create index call_counts_by_time on call_counts (width, at);

-- How many calls of a server each caller made in a day (UTC), counted with their records.
create table usage_counts (
  workspace_id text not null,
  at bigint not null,
  slug text not null,
  -- The id of an API key; of any other caller its kind, because there may be very many.
  caller text not null,
  calls bigint not null,
  errors bigint not null,
  primary key (workspace_id, at, slug, caller)
);
create index usage_counts_by_time on usage_counts (at);

-- What went over the wire, kept with the record of a call while the owner of its server wants to see it.
create table captures (
  call_id text primary key,
  workspace_id text not null,
  server_id text not null,
  -- When the call began.
  at bigint not null,
  -- Sealed JSON: arguments, the request with its credentials masked, and the beginning of the answer.
  sealed_document text not null
);
create index captures_by_workspace on captures (workspace_id, at);
create index captures_by_server on captures (server_id, at);
create index captures_by_time on captures (at);

-- The rest of answers that were cut to the limit of their tool, for the few minutes in which an agent may read on.
create table answer_pieces (
  -- The answer, and the number of the first piece in this row.
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  -- Digest of the caller's identity.
  caller text not null,
  at bigint not null,
  -- Number of pieces of the whole rest, in all rows.
  pieces bigint not null,
  characters bigint not null,
  sealed_pieces text not null,
  -- A keyed digest of the address of a caller whose credential is not known to be good; null for every other caller.
  stranger text
);
create index answer_pieces_by_workspace on answer_pieces (workspace_id, at);
create index answer_pieces_by_time on answer_pieces (at);

-- Files of answers that are too large for the result of a tool, for the few minutes in which their address works.
create table files (
  -- Digest of the id in the address of the file.
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
  -- A keyed digest of the address of a caller whose credential is not known to be good; null for every other caller.
  stranger text
);
create index files_by_workspace on files (workspace_id, at);
create index files_by_time on files (at);

-- The bytes of these files, in chunks of equal size; the last one may be shorter.
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

-- How many calls all processes together took of a quota in one minute or one day (UTC).
create table call_quota_use (
  -- What has the quota: server, workspace, key, or strangers (half of a server's or workspace's), and its id.
  kind text not null,
  ref text not null,
  -- minute or day
  span text not null,
  -- When that began, in ms since 1970.
  starts_at bigint not null,
  calls bigint not null,
  -- The quota, and how many calls it granted, when a process asked last.
  quota bigint not null,
  granted bigint not null,
  primary key (kind, ref, span, starts_at)
);
create index call_quota_use_by_start on call_quota_use (span, starts_at);

-- Addresses of programs that are told of what happens in a workspace.
create table webhooks (
  id text primary key,
  workspace_id text not null,
  -- Scheme, host and port of the address. The rest of it may be a secret, as those of chat services are.
  origin text not null,
  -- JSON array of the events that it is told of.
  events text not null,
  -- The address, and the secret that signs (JSON).
  sealed_target text not null,
  -- Who set the address; of an API key the person whose key it is.
  created_by text not null,
  created_at bigint not null,
  -- Since when it is told of nothing; null while it is told.
  paused_at bigint,
  -- 1 while it waits for another member than its maker, whose access ended.
  unconfirmed smallint not null
);
create index webhooks_by_workspace on webhooks (workspace_id, created_at, id);

-- What a workspace was told, or is to be told once a receiver that failed answers.
create table notices (
  id text primary key,
  workspace_id text not null,
  at bigint not null,
  event text not null,
  -- The slug of a server, the id of a key, or the name of a quota.
  subject text not null,
  text text not null,
  -- What has the same key is told once.
  dedupe text not null,
  -- Who is told, and how it went (JSON).
  deliveries text not null,
  attempts bigint not null,
  -- When the deliveries that wait are tried; null when none waits.
  next_at bigint,
  unique (workspace_id, dedupe)
);
create index notices_in_order on notices (workspace_id, at, id);
create index notices_due on notices (next_at) where next_at is not null;
create index notices_by_time on notices (at);

-- Who changed what in a workspace.
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

-- What changed lately, written in the same transaction as the change; replicas poll it to drop what they remember.
create table changes (
  id text primary key,
  at bigint not null,
  kind text not null,
  ref text not null,
  -- Where the change stands among all changes, given by the database.
  position bigint not null
);
create index changes_by_position on changes (position);
create index changes_by_time on changes (at);

-- The processes that serve from this database. Each says every second that it is there; `seen_at` is the database's time.
create table processes (
  id text primary key,
  version text not null,
  host text not null,
  pid bigint not null,
  started_at bigint not null,
  seen_at bigint not null,
  -- What its own clock said then, so that the others know whose clock is wrong.
  clock_at bigint not null,
  -- The ids of the master keys that it can open values with, comma-separated.
  master_keys text not null
);

-- Of the processes of a service one at a time does what needs to be done once. Until when its holder has it.
create table leases (
  name text primary key,
  holder text not null,
  held_until bigint not null,
  -- When the work was last done to its end, epoch ms; 0 before.
  done_at bigint not null default 0
);

-- The master keys that seal values in this database, by their ids. The keys themselves are never stored.
create table master_keys (
  -- The beginning of a hash of the key, as sealed values name it.
  id text primary key,
  -- A known text sealed with the key: what does not open it is another key.
  canary text not null,
  -- The key's part that proves who wrote the client ids of agents. It outlives the master key, sealed with a newer one.
  sealed_mac_key text not null,
  created_at bigint not null,
  -- When a process last began to seal with this key; the latest is the one that every process must have.
  sealing_since bigint,
  -- When nothing was sealed with it any more, so that it may be left out.
  retired_at bigint
);
