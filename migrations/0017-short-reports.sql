-- readable-by: 0.1.0
-- Reports that read no more than they tell.

-- Deleted servers stay as tombstones, and there may be many of them; nobody looks for a slug among them.
create index servers_in_use_by_slug on servers (workspace_id, slug) where deleted_at is null;

-- A tool is asked for in all servers of a workspace.
create index call_counts_by_tool on call_counts (workspace_id, tool, width, at);
