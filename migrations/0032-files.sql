-- readable-by: 0.1.0
-- Files of answers that are too large for the result of a tool, for the few minutes in which their address works.
create table files (
  -- Digest of the id in the address of the file.
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  -- Slug, or slug and view, of the server as the caller sees it.
  address text not null,
  -- Digest of the caller's identity.
  caller text not null,
  at bigint not null,
  bytes bigint not null,
  -- Name and media type (JSON).
  sealed_head text not null
);
create index files_by_workspace on files (workspace_id, at);
create index files_by_time on files (at);

-- The bytes of these files, in chunks of equal size; the last one may be shorter.
create table file_chunks (
  file_id text not null,
  number bigint not null,
  workspace_id text not null,
  at bigint not null,
  sealed_chunk text not null,
  primary key (file_id, number)
);
create index file_chunks_by_workspace on file_chunks (workspace_id, at);
create index file_chunks_by_time on file_chunks (at);
