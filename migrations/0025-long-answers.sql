-- readable-by: 0.1.0
-- Estimated tokens of the answer to a call; null where a version before wrote the record.
alter table calls add column estimated_tokens bigint;

-- The rest of answers that were cut to the limit of their tool, for the few minutes in which an agent may read on.
create table answer_pieces (
  -- The answer, and the number of the first piece in this row.
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  -- Digest of the caller's identity.
  caller text not null,
  at bigint not null,
  -- Number of pieces of the whole rest, in all rows.
  pieces bigint not null,
  characters bigint not null,
  sealed_pieces text not null
);
create index answer_pieces_by_workspace on answer_pieces (workspace_id, at);
create index answer_pieces_by_time on answer_pieces (at);
