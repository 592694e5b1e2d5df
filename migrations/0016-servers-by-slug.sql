-- A wrong slug is answered with the nearest ones of the workspace.
create index servers_by_slug on servers (workspace_id, slug);
