-- The processes that serve from this database. Each says every second that it is there; `seen_at` is the database's time.
create table processes (
  id text primary key,
  version text not null,
  host text not null,
  pid bigint not null,
  started_at bigint not null,
  seen_at bigint not null
);
