-- One text for SQLite and PostgreSQL: ids text, times bigint milliseconds, flags smallint, documents JSON in text.

create table workspaces (
  id text primary key,
  name text not null,
  created_at bigint not null
);

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

create table members (
  workspace_id text not null references workspaces (id),
  user_id text not null references users (id),
  role text not null,
  created_at bigint not null,
  primary key (workspace_id, user_id)
);

create table api_keys (
  id text primary key,
  workspace_id text not null references workspaces (id),
  name text not null,
  secret_hash text not null,
  scopes text not null,
  -- JSON array of slugs the key is limited to, or null for every server of the workspace.
  servers text,
  created_by text not null,
  created_at bigint not null,
  expires_at bigint,
  revoked_at bigint,
  last_used_at bigint
);
create index api_keys_by_workspace on api_keys (workspace_id, created_at);

-- A deleted server stays as a tombstone, so that nobody can take over its slug and the people who trust it.
create table servers (
  id text primary key,
  workspace_id text not null references workspaces (id),
  slug text not null unique,
  name text not null,
  -- The configuration with every secret masked.
  config text not null,
  version bigint not null,
  created_by text not null,
  created_at bigint not null,
  updated_at bigint not null,
  deleted_at bigint
);
create index servers_by_workspace on servers (workspace_id, created_at);

create table server_versions (
  server_id text not null references servers (id),
  workspace_id text not null references workspaces (id),
  version bigint not null,
  config text not null,
  created_by text not null,
  created_at bigint not null,
  primary key (server_id, version)
);

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

create table calls (
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
  request_id text not null
);
create index calls_by_workspace on calls (workspace_id, started_at, id);
create index calls_by_server on calls (server_id, started_at, id);
create index calls_by_time on calls (started_at);

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

-- What changed lately, written in the same transaction as the change; replicas poll it to drop what they remember.
create table changes (
  id text primary key,
  at bigint not null,
  kind text not null,
  ref text not null
);
create index changes_by_time on changes (at);
