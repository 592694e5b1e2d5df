-- Limits of calls, where they were set; null where the defaults count. JSON, such as {"callsPerSecond":100,"concurrentCalls":80}.

-- Set by those who manage the server.
alter table servers add column limits text;

-- Set by the operator.
alter table workspaces add column limits text;
