-- readable-by: 0.1.0
-- The grants of a server, and of a person, that have not ended, among very many that have.
create index grants_in_use on grants (workspace_id, server_id, slug) where revoked_at is null;
create index grants_in_use_by_user on grants (user_id) where revoked_at is null;
