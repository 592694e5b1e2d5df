-- readable-by: 0.1.0
-- The captures of a workspace in their order, of which only the newest are kept.
create index captures_by_workspace on captures (workspace_id, at);
