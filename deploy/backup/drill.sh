#!/bin/sh
# Backup drill: makes a backup, restores it next to the service, and calls a tool there. Does not change the service.
# In production, use MASTER_KEY_FILE instead of master.key, one of your own tools, and with PostgreSQL the DATABASE_URL of
# an empty database in step 2.
set -eu
# 1. Make a backup and check it with the key.
bin/toolhost backup drill.backup
bin/toolhost verify drill.backup
# 2. Restore it next to the service, with the key.
mkdir -m 700 ./drill
cp "$DATA_DIR/master.key" ./drill/master.key
DATA_DIR=./drill bin/toolhost restore drill.backup
# 3. Start it on another port, and call a tool.
DATA_DIR=./drill PORT=8090 bin/toolhost serve > drill.log 2>&1 &
until curl --silent --fail --output drill.answer http://127.0.0.1:8090/readyz; do sleep 1; done
curl --silent --fail http://127.0.0.1:8090/mcp/projects \
  -H 'Authorization: Bearer local-example-key' -H 'Content-Type: application/json' \
  -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_projects","arguments":{}}}'
# 4. Stop it, and remove all files of the drill.
kill $!
wait $!
rm -r ./drill drill.backup drill.log drill.answer
