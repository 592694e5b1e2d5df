-- readable-by: 0.1.0
-- What finds the rows that have had their time.

create index audit_events_by_time on audit_events (at);
create index users_by_visit on users (last_seen_at);
create index codes_by_grant on codes (grant_id);
