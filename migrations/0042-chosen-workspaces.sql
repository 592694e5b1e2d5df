-- readable-by: 0.1.0
-- When the person last switched to the workspace; null where they never did. Their next sign-in starts in the last one.
alter table members add column chosen_at bigint;
