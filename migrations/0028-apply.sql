-- readable-by: 0.1.0
-- What `toolhost apply` keeps about a server; null where it was never applied.

-- The set of files that the server belongs to, so that only servers of this set are pruned.
alter table servers add column label text;
-- The version that was applied last. Later versions were made elsewhere, and are not overwritten silently.
alter table servers add column applied_version bigint;
