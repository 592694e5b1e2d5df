import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ensureProgram } from '../browser/ensure-program.ts';
import { findFreePort } from '../upstreams/listener.ts';

/** A real PgBouncer in transaction mode: each transaction may get a different connection to the server. */
export type PgBouncer = {
  /** URL of the same database through PgBouncer. */
  url: string;
  stop(): Promise<void>;
};

/** Starts PgBouncer. All clients share `serverConnections` connections to the server. */
export async function startPgBouncer(databaseUrl: string, serverConnections: number): Promise<PgBouncer> {
  const paths = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/opt/homebrew/bin/pgbouncer'] as const;
  const program = await ensureProgram([...paths], 'pgbouncer');
  const { hostname, port: serverPort, username, password, pathname } = new URL(databaseUrl);
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-pgbouncer-'));
  const port = await findFreePort();
  const file = join(folder, 'pgbouncer.ini');
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: 'transaction',
    default_pool_size: serverConnections,
    max_client_conn: 200,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const server = `host=${hostname} port=${serverPort} user=${username} password=${password}`;
  writeFileSync(file, `[databases]\n* = ${server}\n[pgbouncer]\n${lines.join('\n')}\n`, { mode: 0o600 });
  const account = findUnprivilegedUser();
  for (const path of account ? [folder, file] : []) chownSync(path, account?.uid ?? 0, account?.gid ?? 0);
  const child = spawn(program, [file], { ...account, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  const stderrLines: string[] = [];
  const isUp = await new Promise<boolean>((resolve) => {
    createInterface({ input: child.stderr })
      .on('line', (line) => {
        stderrLines.push(line);
        if (line.includes('process up')) resolve(true);
      })
      .on('close', () => resolve(false));
  });
  if (!isUp) throw new Error(`PgBouncer did not start: ${stderrLines.join('\n')}`);
  return {
    url: `postgres://${username}@127.0.0.1:${port}${pathname}`,
    async stop() {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      rmSync(folder, { recursive: true });
    },
  };
}

/** Returns the user that PgBouncer runs as, because it refuses to run as root, as PostgreSQL does. */
function findUnprivilegedUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const readId = (flag: string) => Number(execFileSync('id', [flag, 'nobody']));
  return { uid: readId('-u'), gid: readId('-g') };
}
