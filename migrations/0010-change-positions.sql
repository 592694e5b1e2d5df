-- Where a change stands among all changes, given by the database; null for what a process of the previous version wrote.
alter table changes add column position bigint;
create index changes_by_position on changes (position);
