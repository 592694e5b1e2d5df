-- readable-by: 0.1.0
-- The view of the server at whose address a call was made; null for the server's own address.
alter table calls add column view text;
