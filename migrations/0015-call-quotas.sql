-- Limits of a single key: JSON, such as {"callsPerSecond":5,"callsPerDay":1000}; null where there are none.
alter table api_keys add column limits text;

-- How many calls all processes together took of a quota in one minute or one day (UTC).
create table call_quota_use (
  -- What has the quota: server, workspace, key, or strangers (half of a server's or workspace's), and its id.
  kind text not null,
  ref text not null,
  -- minute or day
  span text not null,
  -- When that began, in ms since 1970.
  starts_at bigint not null,
  calls bigint not null,
  -- The quota, and how many calls it granted, when a process asked last.
  quota bigint not null,
  granted bigint not null,
  primary key (kind, ref, span, starts_at)
);
create index call_quota_use_by_start on call_quota_use (span, starts_at);
