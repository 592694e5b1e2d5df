-- readable-by: 0.1.0
-- Whether the description that a server was imported from is watched, and what the last check of it found.

create table import_checks (
  server_id text primary key,
  workspace_id text not null,
  -- 'daily' or 'never'.
  watch text not null,
  -- When the description is checked next; null while it is not watched.
  due_at bigint,
  -- The import that the other columns are about.
  import_id text,
  checked_at bigint,
  -- SHA-256 of the document that was found.
  document_hash text,
  -- Its address, ETag and time of change (JSON), to fetch it only when it has changed.
  validators text,
  -- What importing it again would change, in numbers (JSON).
  counts text,
  -- Checks in a row that failed, and why the last one did.
  failures bigint not null,
  error text
);
create index import_checks_due on import_checks (due_at) where due_at is not null;
create index import_checks_watched on import_checks (workspace_id) where due_at is not null;
