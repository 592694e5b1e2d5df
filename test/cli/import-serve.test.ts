import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand, toolhostProgram } from '../support/toolhost/toolhost-command.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

/** Describes an API as FastAPI does: without `servers`. */
const describeApi = (more: object = {}) => ({
  openapi: '3.1.0',
  info: { title: 'Garden', version: '1' },
  paths: {
    '/plants/{id}': {
      get: {
        operationId: 'read_plant',
        summary: 'Read a plant',
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }],
        responses: { 200: { description: 'The plant' } },
      },
    },
  },
  ...more,
});

describe('toolhost import --serve', () => {
  const fixtures = useFixtures();
  const api = fixtures.start(startRecordingUpstream);
  const otherApi = fixtures.start(startRecordingUpstream);
  const serve = (args: readonly string[], DATA_DIR: string) =>
    startChildToolhost({ DATA_DIR, LOG_LEVEL: 'silent' }, toolhostProgram, args);

  /** Returns a printed line. It may arrive after the line on the other stream that says that the service is ready. */
  const findLine = (child: ChildToolhost, part: string) =>
    eventually(() => {
      const lines = child.output('stderr').split('\n');
      return lines.find((line) => line.includes(part)) ?? assert.fail(`nothing was printed with "${part}"`);
    });

  /** Runs the command that the service prints, with `claude` replaced by a program that prints the header. */
  async function runConnectCommand(child: ChildToolhost): Promise<string> {
    const line = await findLine(child, 'claude mcp add ');
    const script = `claude() { echo "\${10}"; }\n${line}`;
    const run = await runToolhostCommand(['-c', script], { program: '/bin/sh', cwd: join(toolhostProgram, '../..') });
    assert.deepEqual([run.code, run.stderr], [0, ''], line);
    return run.stdout.trim();
  }

  async function callTool(url: string, authorization: string): Promise<string> {
    const params = { name: 'read_plant', arguments: { id: 7 } };
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: authorization.replace('Authorization: ', ''), 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    });
    return response.text();
  }

  it('serves an API on this machine with one command, and prints the command that connects an agent', async () => {
    const folder = fixtures.folder();
    api.on('GET /openapi.json', () => ({ body: describeApi() }));
    api.on('GET /plants/7', () => ({ body: { id: 7, name: 'Fern' } }));
    const child = await serve(['import', `${api.url}/openapi.json`, '--serve'], folder);
    try {
      const file = join(folder, 'egress-allow');
      assert.equal(readFileSync(file, 'utf8'), `127.0.0.1:${api.port}\n`);
      assert.equal(statSync(file).mode & 0o777, 0o600);
      assert.ok(child.output('stderr').includes(`The service may call 127.0.0.1:${api.port} (stored in ${file})`));
      assert.match(
        child.output('stdout'),
        /^Created the server "Garden" [\s\S]*toolhost ready \S+\nOpen the dashboard/,
      );
      const header = await runConnectCommand(child);
      assert.match(header, /^Authorization: Bearer thk_/);
      assert.match(await callTool(`${child.url}/mcp/garden`, header), /Fern/);
      await child.end();

      const later = await serve(['serve'], folder);
      try {
        assert.match(await callTool(`${later.url}/mcp/garden`, header), /Fern/);
      } finally {
        await later.end();
      }
      await assert.rejects(
        serve(['import', `${api.url}/openapi.json`, '--serve'], folder),
        /"garden" is used by a server .* start the service with "bin\/toolhost serve".*"bin\/toolhost reimport SLUG"/,
      );
      assert.equal(readFileSync(file, 'utf8'), `127.0.0.1:${api.port}\n`);
    } finally {
      await child.end('SIGKILL');
    }
  });

  it('prints the command that sets a secret that the API needs', async () => {
    const folder = fixtures.folder();
    const components = { securitySchemes: { key: { type: 'http', scheme: 'bearer' } } };
    api.on('GET /secured.json', () => ({ body: describeApi({ components, security: [{ key: [] }] }) }));
    api.on('GET /plants/7', ({ headers }) => ({ body: { received: headers.authorization } }));
    const child = await serve(['import', `${api.url}/secured.json`, '--serve'], folder);
    try {
      const line = await findLine(child, ' secrets set garden ');
      const set = await runToolhostCommand(['-c', `printf hush | { ${line}; }`], {
        program: '/bin/sh',
        cwd: join(toolhostProgram, '../..'),
      });
      assert.equal(set.code, 0, `${line}\n${set.stderr}`);
      assert.match(line, / --scopes manage --server garden --expires 1h /);
      assert.doesNotMatch(child.output('stdout'), /has no value/);
      assert.match(await callTool(`${child.url}/mcp/garden`, await runConnectCommand(child)), /\[redacted\]|received/i);
      assert.equal(api.requests.at(-1)?.headers.authorization, 'Bearer hush');
    } finally {
      await child.end();
    }
  });

  it('does not allow another address that the document names, and does not start', async () => {
    const folder = fixtures.folder();
    api.on('GET /elsewhere.json', () => ({ body: describeApi({ servers: [{ url: otherApi.url }] }) }));
    await assert.rejects(
      serve(['import', `${api.url}/elsewhere.json`, '--serve'], folder),
      new RegExp(`address "${otherApi.url}" cannot be called: .*EGRESS_ALLOW=127\\.0\\.0\\.1:${otherApi.port}\\.`),
    );
    assert.equal(readFileSync(join(folder, 'egress-allow'), 'utf8'), `127.0.0.1:${api.port}\n`);
  });

  it('imports into a service that answers, with a key and without changing what it may call', async () => {
    const running = await startToolhost({ egressPorts: [api.port] });
    try {
      api.on('GET /openapi.json', () => ({ body: describeApi() }));
      const env = { TOOLHOST_URL: running.url, DATA_DIR: running.dataDir };
      const args = ['import', `${api.url}/openapi.json`, '--serve'];
      const refused = await runToolhostCommand(args, { env: { ...env, XDG_CONFIG_HOME: fixtures.folder() } });
      assert.match(refused.stderr, /already running at .*stop it with Ctrl-C and run this command again.*no API key/s);
      const imported = await runToolhostCommand(args, { env: { ...env, TOOLHOST_API_KEY: await running.createKey() } });
      assert.match(imported.stdout, /^Created the server "Garden"/, imported.stderr);
      assert.throws(() => statSync(join(running.dataDir, 'egress-allow')), /ENOENT/);
    } finally {
      await running.stop();
    }
  });

  it('is refused for a service that is not local', async () => {
    const port = await findFreePort();
    const env = {
      DATA_DIR: fixtures.folder(),
      BASE_URL: `https://127.0.0.2.example:${port}`,
      MASTER_KEY: Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64'),
      OIDC_ISSUER: 'https://login.example.com',
      OIDC_CLIENT_ID: 'x',
      OIDC_CLIENT_SECRET: 'x',
    };
    const refused = await runToolhostCommand(['import', `${api.url}/openapi.json`, '--serve'], { env });
    assert.match(refused.stderr, /--serve starts a service in local mode, but BASE_URL is https:/);
    assert.equal(refused.code, 1);
  });
});

describe('the example server on the command line', () => {
  const fixtures = useFixtures();
  const home = fixtures.folder();

  it('is called without a key or a token, and with a key without a token', async () => {
    const child = await startChildToolhost({ DATA_DIR: home, DEMO: '1', LOG_LEVEL: 'silent' });
    try {
      const env = { TOOLHOST_URL: child.url, DATA_DIR: home, XDG_CONFIG_HOME: home };
      const key = await runToolhostCommand(['keys', 'create', '--name', 'me', '--scopes', 'manage,call', '--quiet'], {
        env,
      });
      for (const more of [{}, { TOOLHOST_API_KEY: key.stdout.trim() }] as Record<string, string>[]) {
        const call = (...args: string[]) => runToolhostCommand(['call', ...args], { env: { ...env, ...more } });
        // A busy machine overloads the service, which then refuses calls.
        await eventually(async () => {
          const listed = await call('projects', 'list_projects', 'status=eq.active');
          assert.deepEqual([listed.code, listed.stderr], [0, '']);
          assert.match(listed.stdout, /Website relaunch/);
        });
        const unknown = await call('projects', 'list_project');
        assert.match(unknown.stderr, /^error: the server projects has no tool "list_project"; did you mean/);
      }
      const other = await runToolhostCommand(['call', 'shop', 'list'], { env });
      assert.match(other.stderr, /^error: no API key/);
    } finally {
      await child.end();
    }
  });

  it('needs a key where there is no example server', async () => {
    const running = await startToolhost();
    try {
      const env = { TOOLHOST_URL: running.url, XDG_CONFIG_HOME: home };
      const refused = await runToolhostCommand(['call', 'projects', 'list_projects'], { env });
      assert.match(refused.stderr, /^error: no API key/);
    } finally {
      await running.stop();
    }
  });
});
