-- readable-by: 0.1.0
-- Why a call failed, without any value of the caller or the upstream; null for a call that succeeded, and where a
-- version before wrote it.

alter table calls add column reason text;
