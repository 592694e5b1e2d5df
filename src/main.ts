import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { type App, createApp, localWorkspace, openStore, operationParts, type Surroundings } from './app.ts';
import { type Config, readConfig } from './config.ts';
import { newId } from './domain/ids.ts';
import type { ConfigRules } from './domain/server-config.ts';
import { AppError } from './errors.ts';
import { createLocalIdentity } from './local-identity.ts';
import { type Example, exampleSlug, exampleToken, provideExampleServer, startExampleUpstream } from './local-mode.ts';
import { createLog, type Log } from './log.ts';
import { localMasterKey } from './master-key.ts';
import { type Actor, operations } from './operations/index.ts';
import { runOperation } from './operations/run-operation.ts';
import { systemResolve } from './outbound/connector.ts';
import { routes, urlOf } from './routes.ts';
import { createKeyring, type Keyring } from './store/sealing.ts';
import { findWorkspace } from './store/workspaces.ts';

export type Running = { baseUrl: string; app: App; stop(): Promise<void> };

const headersMs = 10_000;
const requestMs = 30_000;
/** Longer than the idle time of the usual load balancers, so that they close first. */
const keepAliveMs = 65_000;
const drainMs = 25_000;

const usualSurroundings: Surroundings = { resolve: systemResolve, slowReaderMs: 30_000, now: Date.now };

/** Starts the service and resolves when it can serve. @throws ConfigError, AppError conflict */
export async function start(env: NodeJS.ProcessEnv, surroundings: Surroundings = usualSurroundings): Promise<Running> {
  const config = readConfig(env, (path) => readFileSync(path, 'utf8'));
  const log = createLog(config.logLevel);
  let app: App | undefined;
  const server = createServer(
    {
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: 2000,
      noDelay: true,
    },
    (request, response) => {
      if (app) app.handle(request, response);
      else response.writeHead(503, { 'Retry-After': '1' }).end();
    },
  );
  const port = await listen(server, config);
  const baseUrl = config.baseUrl ?? `http://127.0.0.1:${port}`;
  const example =
    config.mode === 'local' && config.demo ? await startExampleUpstream(config.dataDir, port + 1) : undefined;
  const masterKeys = config.masterKeys ?? [localMasterKey(config.dataDir)];
  const identity = identityOf(config, baseUrl, port + 2);
  try {
    app = await createApp(withExample({ ...config, baseUrl, masterKeys, identity }, example), log, surroundings);
    if (example) await provideExampleServer(app.runner, example.port);
  } catch (error) {
    await Promise.all([app?.close(), example?.close(), identity.close(), closeServer(server)]);
    throw error;
  }
  const running = app;
  return {
    baseUrl,
    app,
    async stop() {
      running.drain();
      await closeServer(server);
      await example?.close();
      await identity.close();
      await running.close();
    },
  };
}

/** The identity provider of the environment, or in local mode one of our own on loopback. */
function identityOf(config: Config, baseUrl: string, preferredPort: number) {
  const { oidc } = config;
  if (oidc) return { find: async () => oidc, host: new URL(oidc.issuer).host, close: async () => undefined };
  const redirectUris = [urlOf(baseUrl, routes.callback, config.managementSlug)];
  return { ...createLocalIdentity(preferredPort, redirectUris), host: 'this machine' };
}

/** The operator of local mode is the person at the machine, who wants the example to be reachable. */
function withExample<C extends Config>(config: C, example: Example | undefined): C {
  if (!example) return config;
  const range = config.egressAllow;
  return { ...config, egressAllow: [...range, { host: '127.0.0.1', range: undefined, port: example.port }] };
}

function listen(server: Server, config: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EADDRINUSE'
          ? new AppError('conflict', `port ${config.port} is in use; stop what uses it, or set PORT`)
          : error,
      );
    });
    server.listen(config.port, config.host, () => resolve((server.address() as AddressInfo).port));
  });
}

/** Lets running requests finish, up to a deadline. */
async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), drainMs);
  await closed;
  clearTimeout(timer);
}

/** `toolhost serve`: runs until a signal. */
export async function serve(): Promise<void> {
  const running = await start(process.env);
  process.stderr.write(greeting(running.baseUrl, process.env));
  process.stdout.write(`toolhost ready ${running.baseUrl}\n`);
  const log = createLog('info');
  stopOnSignals(running, log);
}

function stopOnSignals(running: Running, log: Log): void {
  let stopping = false;
  const stop = (signal: string) => {
    if (stopping) process.exit(1);
    stopping = true;
    log.info({ signal }, 'stopping: running calls finish first');
    running.stop().then(
      () => process.exit(0),
      (error) => {
        log.error({ err: error }, 'did not stop cleanly');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.on('unhandledRejection', (error) => {
    log.fatal({ err: error }, 'a failure that nothing handles; the process ends so that it can be started afresh');
    process.exit(1);
  });
}

/** What a person at the terminal needs for the first call. */
function greeting(baseUrl: string, env: NodeJS.ProcessEnv): string {
  const config = readConfig(env, (path) => readFileSync(path, 'utf8'));
  const manage = urlOf(baseUrl, routes.mcp, config.managementSlug);
  const lines = ['', `  Toolhost       ${baseUrl}`, `  Management     ${manage}`];
  if (config.mode === 'local' && config.demo) {
    const url = urlOf(baseUrl, routes.mcp, exampleSlug);
    const call = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'list_projects', arguments: {} },
    });
    lines.push(
      `  Example        ${url}`,
      '',
      '  A first tool call:',
      '',
      `curl -s ${url} -H 'Authorization: Bearer ${exampleToken}' -H 'Content-Type: application/json' -d '${call}'`,
      '',
      '  The same for an agent:',
      '',
      `claude mcp add --transport http ${exampleSlug} ${url} --header "Authorization: Bearer ${exampleToken}"`,
    );
  }
  lines.push(
    '',
    '  A key to manage servers and call them:',
    '',
    'bin/toolhost keys create --name me --scopes manage,call',
    '',
    '',
  );
  return lines.join('\n');
}

/** Whoever is at the machine, working straight on the database, also while the service runs. */
export type Operator = {
  /** Which database it is, for people. */
  place: string;
  run(operation: 'createApiKey' | 'listApiKeys' | 'revokeApiKey', input: object): Promise<object>;
  close(): Promise<void>;
};

/** Needs the database and no other setting. @throws AppError notFound for an unknown workspace */
export async function openOperator(env: NodeJS.ProcessEnv, workspaceId = localWorkspace.id): Promise<Operator> {
  const { DATA_DIR, DATABASE_URL } = env;
  const config = readConfig({ DATA_DIR, DATABASE_URL }, readNothing);
  const { db, close } = await openStore(config, false, createLog('warn'), Date.now);
  if (!(await findWorkspace(db, workspaceId))) {
    await close();
    throw new AppError('notFound', `there is no workspace ${JSON.stringify(workspaceId)} in this database`);
  }
  const refuse = () => Promise.reject(new AppError('unavailable', 'this needs the running service'));
  const own = operationParts({ ...config, baseUrl: 'http://127.0.0.1' }, throwAwayKeyring(), Date.now);
  const parts = { ...own, callTool: refuse, previewCall: refuse, flushCalls: async () => undefined };
  const runner = { db, parts, onCommitted: async () => undefined };
  const actor: Actor = {
    kind: 'operator',
    id: 'operator',
    workspaceId,
    scopes: ['manage', 'call'],
    servers: undefined,
  };
  return {
    place: config.databaseUrl === undefined ? `in ${resolve(config.dataDir)}` : 'the one of DATABASE_URL',
    run(operation, input) {
      const op = operations.find((candidate) => candidate.name === operation);
      if (!op) throw new Error(`there is no operation ${operation}`);
      return runOperation(runner, op, actor, input, newId(randomBytes, 'cli'));
    },
    close,
  };
}

/** The rules by which the service of this environment judges configurations. @throws ConfigError */
export function configRules(env: NodeJS.ProcessEnv, baseUrl: string): ConfigRules {
  const { EGRESS_ALLOW, MANAGEMENT_SLUG } = env;
  const config = readConfig({ EGRESS_ALLOW, MANAGEMENT_SLUG }, readNothing);
  return operationParts({ ...config, baseUrl }, throwAwayKeyring(), Date.now).rules;
}

const readNothing = () => '';

/** For what never seals anything, so that no master key is needed. */
function throwAwayKeyring(): Keyring {
  return createKeyring([randomBytes(32)]);
}
