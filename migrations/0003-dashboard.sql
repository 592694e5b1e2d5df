-- People in the dashboard: their sessions, and who was asked to join a workspace.

create table sessions (
  -- Hash of the cookie.
  hash text primary key,
  user_id text not null references users (id),
  workspace_id text not null references workspaces (id),
  created_at bigint not null,
  expires_at bigint not null
);
create index sessions_by_user on sessions (user_id);
create index sessions_by_expiry on sessions (expires_at);

-- An invitation waits until somebody signs in with that verified address.
create table invitations (
  workspace_id text not null references workspaces (id),
  -- In lower case.
  email text not null,
  role text not null,
  invited_by text not null,
  created_at bigint not null,
  primary key (workspace_id, email)
);
create index invitations_by_email on invitations (email);
