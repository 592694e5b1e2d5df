-- Which keys a person made, and which logins are theirs, is asked when they leave a workspace.

create index api_keys_by_maker on api_keys (workspace_id, created_by);
create index grants_by_user on grants (user_id);
