-- readable-by: 0.1.0
-- Strangers ask whether a client ever logged in at a server, which may have very many grants. The ids of clients with a
-- metadata document are this short; longer ones would not fit in an index of PostgreSQL.
create index grants_by_client on grants (server_id, client_id) where length(client_id) <= 1000;
