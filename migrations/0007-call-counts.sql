-- readable-by: 0.1.0
-- Calls are counted when their records are written, so that no report reads every record.

-- 1 when the call is in call_counts. The records of before, and those of older processes, are counted later.
alter table calls add column counted smallint;
create index calls_not_counted on calls (workspace_id, started_at) where counted is null;

-- How many calls began in a minute, an hour or a day: of each tool, and of all tools of the workspace together, where slug
-- and tool are empty.
create table call_counts (
  workspace_id text not null,
  -- Length of the time in ms, and its start.
  width bigint not null,
  at bigint not null,
  slug text not null,
  tool text not null,
  calls integer not null,
  errors integer not null,
  -- How many took so long: the lower bound of each class of durations, in ms.
  ms_0 integer not null,
  ms_1 integer not null,
  ms_2 integer not null,
  ms_3 integer not null,
  ms_4 integer not null,
  ms_5 integer not null,
  ms_6 integer not null,
  ms_7 integer not null,
  ms_8 integer not null,
  ms_10 integer not null,
  ms_12 integer not null,
  ms_15 integer not null,
  ms_18 integer not null,
  ms_22 integer not null,
  ms_27 integer not null,
  ms_33 integer not null,
  ms_41 integer not null,
  ms_51 integer not null,
  ms_63 integer not null,
  ms_78 integer not null,
  ms_97 integer not null,
  ms_121 integer not null,
  ms_151 integer not null,
  ms_188 integer not null,
  ms_235 integer not null,
  ms_293 integer not null,
  ms_366 integer not null,
  ms_457 integer not null,
  ms_571 integer not null,
  ms_713 integer not null,
  ms_891 integer not null,
  ms_1113 integer not null,
  ms_1391 integer not null,
  ms_1738 integer not null,
  ms_2172 integer not null,
  ms_2715 integer not null,
  ms_3393 integer not null,
  ms_4241 integer not null,
  ms_5301 integer not null,
  ms_6626 integer not null,
  ms_8282 integer not null,
  ms_10352 integer not null,
  ms_12940 integer not null,
  ms_16175 integer not null,
  ms_20218 integer not null,
  ms_25272 integer not null,
  primary key (workspace_id, width, at, slug, tool)
);
create index call_counts_by_slug on call_counts (workspace_id, slug, width, at);

-- Every index costs each call a little. These find the calls of a server, of a key and of an outcome; what is asked for
-- besides is looked for among them.
create index calls_by_slug on calls (workspace_id, slug, started_at, id);
create index calls_by_key on calls (workspace_id, key_id, started_at, id) where key_id is not null;
create index calls_by_failure on calls (workspace_id, outcome, started_at, id) where outcome <> 'ok';
drop index calls_by_server;
