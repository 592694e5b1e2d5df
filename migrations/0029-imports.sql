-- readable-by: 0.1.0
-- What a server was imported from, so that importing again can tell edits of people from changes of the document.

create table imports (
  -- Named in the configuration, so each version of it names the import that it is based on.
  id text primary key,
  workspace_id text not null,
  server_id text not null,
  created_at bigint not null,
  document_url text,
  -- SHA-256 of the document.
  document_hash text not null,
  -- How it was imported (JSON).
  choices text not null,
  -- The server as it was generated, before any edit (JSON).
  generated text not null
);
create index imports_by_server on imports (server_id, created_at);
