import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, it } from 'node:test';
import { root } from '../files.ts';
import { getSkipReason, isShell, readBlocks } from '../support/pages/blocks.ts';
import { runBlocks } from '../support/pages/run-page.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const page = 'docs/tutorial-operator.md';

/** Starts the service as the unit file does, after it has stopped. Does nothing for other units. */
const systemctl = `
case "$*" in *toolhost) ;; *) exit 0 ;; esac
test -f "$MACHINE/etc/systemd/system/toolhost.service"
if [ -f "$MACHINE/pid" ]; then
  pid=$(cat "$MACHINE/pid")
  kill "$pid"
  while ps -o stat= -p "$pid" | grep -qv Z; do sleep 0.1; done
fi
set -a
. "$MACHINE/etc/toolhost/toolhost.env"
MASTER_KEY_FILE="$MACHINE/etc/toolhost/master.key"
DATA_DIR="$MACHINE/var/lib/toolhost"
toolhost serve > "$MACHINE/journal" 2>&1 < /dev/null &
echo $! > "$MACHINE/pid"
`;

/** Programs in place of those that would change the machine. */
const programs = {
  systemctl,
  sudo: 'exec env "$@"\n',
  npm: 'if [ "$1" = root ]; then echo "$MACHINE/lib"; fi\n',
  'apt-get': 'exit 0\n',
};

describe('the tutorial for operators', () => {
  const folder = useFixtures().folder();

  it('[ship 8] leads to a running service, a restored backup, and an upgrade', async () => {
    for (const name of ['bin', 'lib', 'etc/systemd/system', 'etc/caddy', 'var/lib', 'var/backups'])
      mkdirSync(join(folder, name), { recursive: true });
    for (const [name, script] of Object.entries(programs)) {
      writeFileSync(join(folder, 'bin', name), `#!/bin/sh\nset -eu\n${script}`);
      chmodSync(join(folder, 'bin', name), 0o755);
    }
    symlinkSync(root, join(folder, 'lib', 'toolhost'));
    const port = await findFreePort();
    const blocks = readBlocks(page).filter(
      (block) => isShell(block) && getSkipReason(block)?.includes('operator-tutorial.test.ts'),
    );
    assert.equal(blocks.length, 5);
    const replacements = new Map([
      ['/etc/', `${folder}/etc/`],
      ['/var/', `${folder}/var/`],
      ['127.0.0.1:8080/readyz', `127.0.0.1:${port}/readyz`],
    ]);
    const path = [join(folder, 'bin'), join(root, 'bin'), process.env.PATH].join(delimiter);
    const env = { PATH: path, MACHINE: folder, PORT: String(port) };
    const { stdout, failure } = await runBlocks(blocks, { replacements, cwd: folder, env });
    assert.equal(failure, undefined);
    assert.match(stdout, /^Wrote [\s\S]*^Valid: [\s\S]*^Restored [\s\S]*^Wrote /m);
    assert.match(stdout, /reverse_proxy 127\.0\.0\.1:8080 \{/);
    assert.equal(statSync(join(folder, 'etc/toolhost/master.key')).mode & 0o777, 0o600);
    assert.ok(existsSync(join(folder, 'var/backups/toolhost/before-upgrade.backup')));
    assert.match(readFileSync(join(folder, 'journal'), 'utf8'), /^toolhost ready /m);
  });
});
