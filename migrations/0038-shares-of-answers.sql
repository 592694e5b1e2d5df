-- readable-by: 0.1.0
-- A keyed digest of the address of a caller whose credential is not known to be good; null for every other caller.
alter table answer_pieces add column stranger text;
