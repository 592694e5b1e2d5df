-- Every index costs each call a little; old calls are found by workspace and time.
drop index calls_by_time;
