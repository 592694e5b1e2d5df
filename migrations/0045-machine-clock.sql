-- readable-by: 0.1.0
-- What the processes on a SQLite file agree on while the clock of their machine is behind their time, because it was set
-- back: their time is `level` and half of the time since the boot, both in ms. No row while it is not.
create table machine_clock (
  id smallint primary key check (id = 1),
  boot text not null,
  level bigint not null
);
