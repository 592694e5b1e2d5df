-- readable-by: 0.1.0
-- Every list is read in pages, in the order of an index.

-- What lists show of a server, so that no list reads whole configurations: JSON of one version, that of summary_version.
alter table servers add column summary text;
alter table servers add column summary_version bigint;

-- Deleted servers are not in it.
create index servers_in_use on servers (workspace_id, created_at, id) where deleted_at is null;
drop index servers_by_workspace;
create index api_keys_in_order on api_keys (workspace_id, created_at, id);
drop index api_keys_by_workspace;
create index grants_in_order on grants (workspace_id, created_at, id);
create index grants_by_slug on grants (workspace_id, slug, created_at, id);
drop index grants_by_workspace;
create index members_in_order on members (workspace_id, created_at, user_id);
create index invitations_in_order on invitations (workspace_id, created_at, email);
create index members_by_user on members (user_id, created_at);
