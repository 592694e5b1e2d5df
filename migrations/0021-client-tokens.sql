-- readable-by: 0.1.0
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
