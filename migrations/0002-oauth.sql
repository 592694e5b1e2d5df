-- The OAuth proxy. Tokens, codes, states and cookies are stored as SHA-256 alone.

-- One login in flight: made when a person has consented, gone at the callback.
create table authorizations (
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  -- The consent that it came from; a consent form counts once.
  consent_id text not null unique,
  client_id text not null,
  client_name text not null,
  redirect_uri text not null,
  client_state text,
  code_challenge text not null,
  scope text not null,
  -- Hash of the cookie of the browser that consented.
  binding_hash text not null,
  sealed_verifier text not null,
  created_at bigint not null,
  expires_at bigint not null
);
create index authorizations_by_expiry on authorizations (expires_at);

-- What a finished login left. The provider's tokens are sealed with a key of the grant, which only our own tokens
-- can unwrap, and then with the master key.
create table grants (
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  slug text not null,
  client_id text not null,
  client_name text not null,
  user_id text,
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
create index grants_by_workspace on grants (workspace_id, created_at);
create index grants_by_server on grants (server_id);

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
create index codes_by_expiry on codes (expires_at);

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
