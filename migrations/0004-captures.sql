-- Capture: what went over the wire, kept with the record of a call while the owner of its server wants to see it.

-- Until when the calls of a server are captured; null when they never were.
alter table servers add column capture_until bigint;

create table captures (
  call_id text primary key,
  workspace_id text not null,
  server_id text not null,
  -- When the call began.
  at bigint not null,
  -- Sealed JSON: arguments, the request with its credentials masked, and the beginning of the answer.
  sealed_document text not null
);
create index captures_by_server on captures (server_id, at);
create index captures_by_time on captures (at);
