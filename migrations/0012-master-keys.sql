-- readable-by: 0.1.0
-- The master keys that seal values in this database, by their ids. The keys themselves are never stored.

create table master_keys (
  -- The beginning of a hash of the key, as sealed values name it.
  id text primary key,
  -- A known text sealed with the key: what does not open it is another key.
  canary text not null,
  -- The key's part that proves who wrote the client ids of agents. It outlives the master key, sealed with a newer one.
  sealed_mac_key text not null,
  created_at bigint not null,
  -- When a process last began to seal with this key; the latest is the one that every process must have.
  sealing_since bigint,
  -- When nothing was sealed with it any more, so that it may be left out.
  retired_at bigint
);
