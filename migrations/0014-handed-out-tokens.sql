-- Tokens of providers that went to agents as they are (passthrough), by their hashes: what the person had agreed to then.

create table handed_out_tokens (
  server_id text not null,
  -- SHA-256 of the token.
  hash text not null,
  agreement text not null,
  expires_at bigint not null,
  primary key (server_id, hash)
);
create index handed_out_tokens_by_agreement on handed_out_tokens (server_id, agreement);
create index handed_out_tokens_by_expiry on handed_out_tokens (expires_at);
