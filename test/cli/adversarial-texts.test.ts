import assert from 'node:assert/strict';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { after, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { getRunCount } from '../sets.ts';
import {
  buildConfig,
  buildValidResponse,
  listEntries,
  respondJson,
  serverEntry,
  startAdversarialService,
} from '../support/toolhost/adversarial-service.ts';
import { assertFailed, createTestFolder } from '../support/toolhost/command-world.ts';
import { startLogin } from '../support/toolhost/login-command.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

/** Commands that show or store texts of a service. */
const commands: string[][] = [
  ['complete', '--', 'call', 'one', ''],
  ...[
    ...['servers list', 'servers get one', 'tools list one', 'secrets list one', 'versions one'],
    ...['versions diff one 999999 999998', 'calls', 'audit', 'logins list', 'export one --out exported'],
    ...['call one get --arg id=1', 'preview one get --arg id=1'],
  ].map((command) => command.split(' ')),
];

/** Names and definitions of the one tool and its one argument that once crashed the program. */
const pastFailures = ['call', 'preview'].flatMap((command) =>
  Object.entries({ 21: 'a\nb', 25: { a: null }, 26: null }).map(([at, replacement]): [string[], number, unknown] => [
    [command, 'one', 'get', '--arg', 'id=1'],
    Number(at),
    replacement,
  ]),
);

const malformedTexts = ['', '../../x', 'a\nb'];
const malformedValues = [null, 7, ...malformedTexts, [], [null], ['a'], {}, { a: null }, true, { length: 1 }];

/** Returns the value with one of its parts replaced. `at` selects the part. */
function mutate(value: unknown, at: number, replacement: unknown): unknown {
  let remaining = at;
  const walk = (part: unknown): unknown => {
    if (remaining-- === 0) return replacement;
    if (Array.isArray(part)) return part.map(walk);
    if (typeof part !== 'object' || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, walk(inner)]));
  };
  return walk(value);
}

describe('commands that receive texts of an adversarial service', async () => {
  let folder: string;
  let count = 0;
  const service = await startAdversarialService();
  after(() => service.close());
  const root = createTestFolder();
  beforeEach(() => {
    folder = join(root, String(count++), 'inside');
    mkdirSync(folder, { recursive: true });
  });
  const run = (...args: string[]) => runToolhostCommand(args, { env: service.env, cwd: folder });
  const serveServer = (slug: string, config = buildConfig(slug)) =>
    service.respondWith(
      respondJson((path) => {
        if (path === '/servers') return { servers: [serverEntry(slug)] };
        const original = buildValidResponse(path) as object | undefined;
        return path.endsWith('/limits') || !original ? original : { ...original, config };
      }),
    );

  it('[sec R2] write exported files only into the named folder, whatever the slugs of the servers', async () => {
    const paths = ['../../escaped', '/tmp/escaped', 'a/b', 'C:\\x', 'a\nb', '.hidden', '..', ''];
    const slugs = [...paths, 'Weather', 'a'.repeat(300)];
    for (const slug of slugs) {
      serveServer(slug);
      assertFailed(await run('export', '--out', 'exported'), /^error: /);
      serveServer('one', buildConfig(slug));
      const one = await run('export', 'one', '--out', 'exported');
      assertFailed(one, /^error: the service did not return the configuration of the server "one"[^\n]*\n$/);
    }
    assert.deepEqual(readdirSync(join(folder, '..'), { recursive: true }), ['inside']);
  });

  it("[sec R2] export only over the server's own file, and never to a device", async () => {
    serveServer('one');
    const target = join(folder, 'elsewhere');
    mkdirSync(join(folder, 'exported'));
    symlinkSync(target, join(folder, 'exported/one.yaml'));
    assertFailed(await run('export', 'one', '--out', 'exported'), /already exists|no such file/);
    assert.equal(lstatSync(target, { throwIfNoEntry: false }), undefined);
    serveServer('con');
    assert.match((await run('export', 'con', '--out', 'devices')).stderr, /devices\/con_\.yaml/);
    assert.deepEqual(readdirSync(join(folder, 'devices')), ['con_.yaml']);
    const outsideFile = join(folder, 'shared.yaml');
    const exported = readFileSync(join(folder, 'devices/con_.yaml'), 'utf8');
    writeFileSync(outsideFile, exported.replace('Gets it.', 'Got it.'), { mode: 0o600 });
    mkdirSync(join(folder, 'links'));
    symlinkSync(outsideFile, join(folder, 'links/any.yaml'));
    assertFailed(await run('export', 'con', '--out', 'links'), /any\.yaml: is a link to a file outside/);
    assert.match(readFileSync(outsideFile, 'utf8'), /Got it\./);
    const insideFile = join(folder, 'links/.real');
    renameSync(outsideFile, insideFile);
    rmSync(join(folder, 'links/any.yaml'));
    symlinkSync('.real', join(folder, 'links/any.yaml'));
    assert.match((await run('export', 'con', '--out', 'links')).stderr, /^changed/);
    assert.match(readFileSync(insideFile, 'utf8'), /Gets it\./);
    assert.equal(lstatSync(insideFile).mode & 0o777, 0o600);
    assert.ok(lstatSync(join(folder, 'links/any.yaml')).isSymbolicLink());
  });

  it('[sec R2] do not reach another route with a name that is empty or consists of dots', async () => {
    service.respondWith(respondJson(() => ({ deleted: 'x' })));
    for (const name of ['.', '..', ''])
      for (const command of [
        ['tools', 'remove', 'one'],
        ['secrets', 'delete', 'one'],
        ['servers', 'delete'],
      ])
        assertFailed(await run(...command, name, '--yes'), /^error: there is no \w+ "\.{0,2}"\n$/);
    assert.deepEqual(service.requests, []);
  });

  it('[sec R2] print a record, a row, or a comment on one line', async () => {
    const text = 'a\nb\r\nc\u2028d\u0085e';
    const fields: { [path: string]: object } = {
      '/calls': { server: text, reason: text },
      '/audit': { operation: text, actor_name: text },
    };
    service.respondWith(
      respondJson((path) => {
        if (path === '/servers') return { servers: [serverEntry('one', { name: text, url: text })] };
        if (path === '/servers/one')
          return { ...(buildValidResponse(path) as object), warnings: [{ path: text, message: text }] };
        const list = listEntries[path];
        return list && { [list.field]: [{ ...list.entry(1), ...fields[path] }] };
      }),
    );
    const lines = async (...args: string[]) => (await run(...args)).stdout.trimEnd().split(/[\n\r\u0085\u2028]/);
    assert.equal((await lines('servers', 'list')).length, 2);
    assert.equal((await lines('calls')).length, 1);
    assert.equal((await lines('audit')).length, 1);
    assert.equal((await lines('servers', 'get', 'one')).filter((line) => line.startsWith('# ')).length, 3);
  });

  it('[sec R2] fail with a sentence, whatever the shape of a response', async () => {
    const command = fc.constantFrom(...commands);
    const sentence = /^(?:error: [^\n]*\n(?: {2}[^\n]*\n)*)?$/;
    await fc.assert(
      fc.asyncProperty(command, fc.nat(60), fc.constantFrom(...malformedValues), async (args, at, replacement) => {
        service.respondWith(
          respondJson((path) => {
            const original = buildValidResponse(path);
            // Only one response of a command is malformed.
            return path.endsWith('/limits') ? original : mutate(original, at, replacement);
          }),
        );
        const { code, stdout, stderr } = await run(...args);
        const context = `${args.join(' ')}: ${code} ${stdout} ${stderr}`;
        assert.ok(code === 0 || code === 1 || (code === 2 && args[1] === 'diff'), context);
        if (code === 1 && args[0] !== 'call') assert.match(stderr, sentence, context);
        assert.doesNotMatch(stderr, /bug in toolhost|^\s+at /m, context);
      }),
      { numRuns: getRunCount(40), examples: pastFailures },
    );
    for (const problems of [[null], 'text', [7], { length: 3 }, [{ path: 1, message: [] }]]) {
      const body = JSON.stringify({ code: 'x', detail: 'no', problems });
      service.respondWith((_request, response) => void response.writeHead(400).end(body));
      assertFailed(await run('servers', 'list'), /^error: [^\n]* Check the URL\.\n$/);
    }
  });

  it('[sec R2] do not store a login that could not be read back, and keep the logins of other profiles', async () => {
    const env = { XDG_CONFIG_HOME: join(folder, 'person') };
    mkdirSync(join(folder, 'person/toolhost'), { recursive: true });
    const path = join(folder, 'person/toolhost/credentials.json');
    const before = JSON.stringify({ profiles: { work: { url: 'https://work.example.com', api_key: 'thk_work' } } });
    writeFileSync(path, before, { mode: 0o600 });
    const { url } = service;
    const id = 'client '.repeat(3);
    const metadata = `${url}/.well-known/oauth-protected-resource/api/v1`;
    const responses: { [path: string]: object } = {
      '/.well-known/oauth-protected-resource/api/v1': { resource: `${url}/api/v1`, authorization_servers: [url] },
      '/.well-known/oauth-authorization-server': {
        ...{ issuer: url, authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token` },
        ...{ registration_endpoint: `${url}/register`, response_types_supported: ['code'] },
        code_challenge_methods_supported: ['S256'],
      },
      '/token': { access_token: 'token', token_type: 'Bearer' },
    };
    service.respondWith(async (request, response) => {
      const at = new URL(request.url ?? '', url).pathname;
      const registered = at === '/register' && { ...((await json(request)) as object), client_id: id };
      const body = registered || responses[at];
      response.setHeader('content-type', 'application/json');
      if (!body) response.setHeader('www-authenticate', `Bearer resource_metadata="${metadata}"`);
      response.writeHead(registered ? 201 : body ? 200 : 401).end(JSON.stringify(body ?? { code: 'x', detail: 'no' }));
    });
    const login = startLogin([url, '--no-browser'], { env });
    const authorization = new URL(await login.address).searchParams;
    const redirect = new URL(authorization.get('redirect_uri') ?? '');
    const state = authorization.get('state') ?? '';
    redirect.search = String(new URLSearchParams({ code: 'code', state, iss: url }));
    login.pasteLine(redirect.href);
    assertFailed(await login.ended, /cannot be stored: client_id/);
    assert.equal(readFileSync(path, 'utf8'), before);
    assert.deepEqual(readdirSync(join(folder, 'person/toolhost')).toSorted(), ['credentials.json', 'credentials.lock']);
  });
});
