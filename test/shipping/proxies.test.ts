import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type RunningProxy, startProxy } from '../support/deploy/proxies.ts';
import { eventually } from '../support/eventually.ts';
import { type FreshRequest, freshCall, freshRequest } from '../support/fresh-request.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { runToolhostJson } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { findFreePorts } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const headers = { host: 'tools.example.com' };
/** Number of concurrent calls through each proxy during restarts. */
const callers = 4;

describe('a proxy with the configuration from its page', { timeout: 900_000, concurrency: true }, () => {
  const fixtures = useFixtures();
  const folder = fixtures.folder();
  const postgres = fixtures.start(startPostgres);
  const upstream = fixtures.start(startRecordingUpstream);

  /** Starts a service in production mode, with one process per port. It ends with the test. */
  async function startService(t: TestContext, count: number, more: Record<string, string>, path: '' | '/hub' = '') {
    const ports = await findFreePorts(count);
    const env: Record<string, string> = {
      BASE_URL: `https://tools.example.com${path}`,
      MASTER_KEY: randomBytes(32).toString('base64'),
      OIDC_ISSUER: 'https://login.example.com',
      OIDC_CLIENT_ID: 'toolhost',
      OIDC_CLIENT_SECRET: 'of-the-client',
      EGRESS_ALLOW: `127.0.0.1:${upstream.port}`,
      CALLS_PER_SECOND: '0',
      CONCURRENT_CALLS: '0',
      CONCURRENT_CALLS_PER_KEY: '0',
      TRUSTED_PROXIES: '1',
      REFUSALS_PER_MINUTE: '300',
      LOG_LEVEL: 'warn',
      ...more,
    };
    const start = (port: number) => startChildToolhost({ ...env, PORT: String(port) });
    const processes: ChildToolhost[] = await Promise.all(ports.map(start));
    t.after(() => Promise.all(processes.map((running) => running.end('SIGKILL'))));
    const createKeyArgs = ['keys', 'create', '--name', 'test', '--scopes', 'manage,call'];
    const { key } = await runToolhostJson<{ key: string }>(createKeyArgs, { env });
    const url = `http://127.0.0.1:${ports[0]}`;
    const authentication = { type: 'Bearer', token: '{{KEY}}' };
    const sendManagementRequest = async (method: string, at: string, body: object) => {
      const reply = await freshRequest(`${url}${path}/api/v1${at}`, { key, method, headers, body: { ...body } });
      assert.ok(reply.status < 300, reply.text);
    };
    await sendManagementRequest('POST', '/servers', buildServerAt('called', upstream.url, { authentication }));
    await sendManagementRequest('PUT', '/servers/called/secrets/KEY', { value: 'secret' });
    return {
      ports,
      key,
      /** Restarts the processes one after the other, as the page describes. */
      async restart(nginx: RunningProxy, proxies: readonly RunningProxy[]): Promise<void> {
        for (const [index, port] of ports.entries()) {
          nginx.reload((text) => text.replace(`:${port} max_fails=0`, `:${port} max_fails=0 down`));
          const oldProcess = processes[index] ?? assert.fail();
          assert.equal(await oldProcess.end(), 0, oldProcess.output());
          processes[index] = await start(port);
          nginx.reload((text) => text);
          await Promise.all(proxies.map(({ url }) => waitUntilServedBy(`http://127.0.0.1:${port}`, url)));
        }
      },
    };
  }

  async function startProxies(
    t: TestContext,
    names: readonly string[],
    ports: readonly number[],
    path: '' | '/hub' = '',
  ): Promise<RunningProxy[]> {
    const proxies: RunningProxy[] = [];
    for (const name of names) {
      const proxy = await startProxy(name, ports, path);
      t.after(() => proxy.stop());
      proxies.push(proxy);
    }
    return proxies;
  }

  /** Resolves when a proxy has noticed that a process is ready. A request id begins with the id of its process. */
  async function waitUntilServedBy(process: string, proxy: string): Promise<void> {
    const getProcessId = async (url: string) =>
      String((await freshRequest(`${url}/readyz`, { headers })).headers['x-request-id']).slice(0, 10);
    const expectedId = await getProcessId(process);
    await eventually(async () => assert.equal(await getProcessId(proxy), expectedId), 120_000);
  }

  /**
   * Calls through the proxies until the work is done. Returns the failures, and the number of calls through each proxy.
   */
  async function callThroughProxies(proxies: readonly RunningProxy[], key: string, work: () => Promise<void>) {
    const failures: string[] = [];
    const counts = new Map<string, number>();
    let shouldStop = false;
    const keepCalling = async ({ name, url }: RunningProxy, pauseMs: number) => {
      while (!shouldStop) {
        const { status, text } = await freshCall(url, 'called', { key, headers });
        // A busy machine may make a process refuse calls for a moment, which is unrelated to the restart.
        const isOverloaded = text.includes('overloaded');
        if (!isOverloaded && (status !== 200 || text.includes('"isError":true')))
          failures.push(`${name}: ${status} ${text}`);
        counts.set(name, (counts.get(name) ?? 0) + 1);
        await delay(pauseMs);
      }
    };
    // Callers that pause leave idle connections, which the stopping process closes.
    const callLoops = proxies.flatMap((proxy) => Array.from({ length: callers }, (_, n) => keepCalling(proxy, n * 40)));
    await work().finally(() => {
      shouldStop = true;
    });
    await Promise.all(callLoops);
    return { failed: failures, counts };
  }

  it('[ship 8] loses no call while replicas are restarted one after the other', async (t) => {
    const service = await startService(t, 2, {
      DATABASE_URL: await postgres.createDatabase(),
      DATA_DIR: join(folder, 'two'),
    });
    const proxies = await startProxies(t, ['nginx', 'caddy', 'haproxy'], service.ports);
    const { failed, counts } = await callThroughProxies(proxies, service.key, () =>
      service.restart(proxies[0] ?? assert.fail(), proxies),
    );
    assert.deepEqual(
      failed.slice(0, 3),
      [],
      `${failed.length} failed\n${proxies.map((proxy) => proxy.output()).join('\n')}`,
    );
    for (const { name, url } of proxies) {
      assert.ok((counts.get(name) ?? 0) > 50, name);
      assert.equal((await freshRequest(`${url}/metrics`, { headers })).status, 404, name);
    }
  });

  it("[ship 8] forwards the client's address, whatever the client claims", async (t) => {
    const service = await startService(t, 1, { DATA_DIR: join(folder, 'address') });
    const proxies = await startProxies(t, ['nginx', 'caddy', 'haproxy'], service.ports);
    // Refused requests are counted by address. Claims of other addresses must not circumvent that.
    for (const { name, url } of proxies) {
      const sendRequest = (n: number) =>
        freshRequest(`${url}/mcp/called`, {
          body: {},
          headers: { ...headers, 'x-forwarded-for': `198.51.100.${n % 250}` },
        });
      let statuses: number[] = [];
      await eventually(async () => {
        statuses = await Promise.all(Array.from({ length: 200 }, async (_, n) => (await sendRequest(n)).status));
        assert.ok(statuses.includes(429), `${name}: ${statuses[0]}`);
      }, 30_000);
    }
  });

  it('[ship 9] serves a service below a path of the host, and nothing else on the host', async (t) => {
    const service = await startService(t, 1, { DATA_DIR: join(folder, 'path') }, '/hub');
    const proxies = await startProxies(t, ['nginx', 'caddy'], service.ports, '/hub');
    for (const { name, url } of proxies) {
      const sendRequest = (path: string, more: FreshRequest = {}) =>
        freshRequest(url + path, { ...more, headers: { ...more.headers, ...headers } });
      const calledReply = await freshCall(`${url}/hub`, 'called', { key: service.key, headers });
      assert.deepEqual([calledReply.status, calledReply.text.includes('"isError":true')], [200, false], name);
      const page = await sendRequest('/hub/', { headers: { cookie: '__Secure-toolhost-session=username' } });
      const [, script = ''] = /src="([^"]+)"/.exec(page.text) ?? [];
      assert.match(script, /^\/hub\/assets\//, name);
      assert.equal((await sendRequest(script)).status, 200, name);
      const refused = await sendRequest('/hub/mcp/manage', { body: {} });
      const [, metadata = ''] = /resource_metadata="([^"]+)"/.exec(String(refused.headers['www-authenticate'])) ?? [];
      assert.equal(metadata, 'https://tools.example.com/.well-known/oauth-protected-resource/hub/mcp/manage');
      const { body } = await sendRequest(new URL(metadata).pathname);
      assert.deepEqual(body.authorization_servers, ['https://tools.example.com/hub/mcp/manage'], name);
      const issuer = await sendRequest('/.well-known/oauth-authorization-server/hub/mcp/manage');
      assert.equal(issuer.body.issuer, 'https://tools.example.com/hub/mcp/manage', name);
      for (const path of ['/hub/metrics', '/mcp/manage', '/livez', '/hubs/livez', '/.well-known/other/hub/x'])
        assert.equal((await sendRequest(path)).headers['x-request-id'], undefined, `${name} ${path}`);
    }
  });
});
