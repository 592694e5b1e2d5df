-- readable-by: 0.1.0
-- The bytes of logins, which upkeep sums up for each workspace: the rows themselves are long. The length is the first
-- column, so that no query for the logins of a workspace takes this index for its own.
create index grants_by_bytes on grants (
  (octet_length(sealed_tokens) + 2 * octet_length(client_id) + octet_length(scope) + 500),
  workspace_id,
  revoked_at,
  user_id
);
