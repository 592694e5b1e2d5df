-- readable-by: 0.1.0
-- How much a workspace may store, and what finds the rows that have had their time.

-- What the operator allows a workspace instead of the default; JSON such as {"servers":2000}.
alter table workspaces add column quotas text;
-- The minute of the last change, in epoch ms, and how many changes were stored in it; the same of its day.
alter table workspaces add column writes_at bigint;
alter table workspaces add column writes bigint;
alter table workspaces add column day_writes_at bigint;
alter table workspaces add column day_writes bigint;

-- Size of the configuration of a server and of its kept versions, in bytes; null where a version before wrote it.
alter table servers add column stored_bytes bigint;
create index servers_not_measured on servers (id) where stored_bytes is null;
create index server_versions_by_age on server_versions (workspace_id, created_at);
create index servers_by_size on servers (workspace_id, stored_bytes) where deleted_at is null;
create index api_keys_in_use on api_keys (workspace_id, expires_at) where revoked_at is null;
create index secrets_by_workspace on secrets (workspace_id);

create index api_keys_by_end on api_keys (revoked_at) where revoked_at is not null;
create index api_keys_by_expiry on api_keys (expires_at) where expires_at is not null;
create index grants_by_end on grants (revoked_at) where revoked_at is not null;
create index invitations_by_time on invitations (created_at);

-- Of the processes of a service one at a time does what needs to be done once. Until when its holder has it.
create table leases (
  name text primary key,
  holder text not null,
  held_until bigint not null
);
