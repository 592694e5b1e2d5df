-- readable-by: 0.1.0
-- The ids of the master keys that a process can open values with, comma-separated; null for an older version.
alter table processes add column master_keys text;
