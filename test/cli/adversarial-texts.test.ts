import assert from 'node:assert/strict';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { getRunCount } from '../sets.ts';
import {
  type AdversarialService,
  buildConfig,
  buildValidResponse,
  listEntries,
  respondJson,
  serverEntry,
  startAdversarialService,
} from '../support/toolhost/adversarial-service.ts';
import { startLogin } from '../support/toolhost/login-command.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

/** Commands that show or store texts of a service. */
const commands: readonly string[][] = [
  ['servers', 'list'],
  ['servers', 'get', 'one'],
  ['tools', 'list', 'one'],
  ['secrets', 'list', 'one'],
  ['versions', 'one'],
  ['versions', 'diff', 'one', '999999', '999998'],
  ['calls'],
  ['audit'],
  ['logins', 'list'],
  ['export', 'one', '--out', 'exported'],
  ['call', 'one', 'get', '--arg', 'id=1'],
  ['preview', 'one', 'get', '--arg', 'id=1'],
  ['complete', '--', 'call', 'one', ''],
];

/** Names and definitions of the one tool and its one argument that once crashed the program. */
const pastFailures: [command: readonly string[], at: number, by: unknown][] = ['call', 'preview'].flatMap((command) =>
  (
    [
      [21, 'a\nb'],
      [25, { a: null }],
      [26, null],
    ] as const
  ).map(([at, replacement]): [readonly string[], number, unknown] => [
    [command, 'one', 'get', '--arg', 'id=1'],
    at,
    replacement,
  ]),
);

const malformedValues: unknown[] = [
  null,
  7,
  '',
  '../../x',
  'a\nb',
  [],
  [null],
  ['a'],
  {},
  { a: null },
  true,
  { length: 1 },
];

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

describe('commands that receive texts of an adversarial service', () => {
  let service: AdversarialService;
  let root: string;
  let folder: string;
  let count = 0;
  before(async () => {
    service = await startAdversarialService();
    root = mkdtempSync(join(tmpdir(), 'toolhost-texts-'));
  });
  beforeEach(() => {
    folder = join(root, String(count++), 'inside');
    mkdirSync(folder, { recursive: true });
  });
  after(() => {
    service.close();
    rmSync(root, { recursive: true, force: true });
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
    const slugs = [
      '../../escaped',
      '/tmp/escaped',
      'a/b',
      'C:\\x',
      'a\nb',
      '.hidden',
      'Weather',
      '..',
      '',
      'a'.repeat(300),
    ];
    for (const slug of slugs) {
      serveServer(slug);
      const all = await run('export', '--out', 'exported');
      assert.deepEqual([all.code, all.stdout], [1, ''], `${JSON.stringify(slug)} ${all.stderr}`);
      serveServer('one', buildConfig(slug));
      const one = await run('export', 'one', '--out', 'exported');
      assert.deepEqual([one.code, one.stdout], [1, ''], `${JSON.stringify(slug)} ${one.stderr}`);
      assert.match(one.stderr, /^error: the service did not return the configuration of the server "one"[^\n]*\n$/);
    }
    assert.deepEqual(readdirSync(join(folder, '..'), { recursive: true }), ['inside']);
  });

  it("[sec R2] export only over the server's own file, and never to a device", async () => {
    serveServer('one');
    const target = join(folder, 'elsewhere');
    mkdirSync(join(folder, 'exported'));
    symlinkSync(target, join(folder, 'exported/one.yaml'));
    const refused = await run('export', 'one', '--out', 'exported');
    assert.deepEqual([refused.code, /already exists|no such file/.test(refused.stderr)], [1, true], refused.stderr);
    assert.equal(lstatSync(target, { throwIfNoEntry: false }), undefined);
    serveServer('con');
    assert.match((await run('export', 'con', '--out', 'devices')).stderr, /devices\/con_\.yaml/);
    assert.deepEqual(readdirSync(join(folder, 'devices')), ['con_.yaml']);
    const outsideFile = join(folder, 'shared.yaml');
    writeFileSync(outsideFile, readFileSync(join(folder, 'devices/con_.yaml'), 'utf8').replace('Gets it.', 'Got it.'), {
      mode: 0o600,
    });
    mkdirSync(join(folder, 'links'));
    symlinkSync(outsideFile, join(folder, 'links/any.yaml'));
    const outside = await run('export', 'con', '--out', 'links');
    assert.deepEqual([outside.code, /any\.yaml: is a link to a file outside/.test(outside.stderr)], [1, true]);
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
    for (const name of ['.', '..', '']) {
      for (const args of [
        ['tools', 'remove', 'one', name, '--yes'],
        ['secrets', 'delete', 'one', name, '--yes'],
        ['servers', 'delete', name, '--yes'],
      ]) {
        const { code, stderr } = await run(...args);
        assert.deepEqual([code, /^error: there is no \w+ "\.{0,2}"\n$/.test(stderr)], [1, true], stderr);
      }
    }
    assert.deepEqual(service.requests, []);
  });

  it('[sec R2] print a record, a row, or a comment on one line', async () => {
    const multilineText = 'a\nb\r\nc\u2028d\u0085e';
    service.respondWith(
      respondJson((path) => {
        if (path === '/servers') return { servers: [serverEntry('one', { name: multilineText, url: multilineText })] };
        if (path === '/calls')
          return { calls: [{ ...listEntries[path]?.entry(1), server: multilineText, reason: multilineText }] };
        if (path === '/audit')
          return { events: [{ ...listEntries[path]?.entry(1), operation: multilineText, actor_name: multilineText }] };
        if (path === '/servers/one')
          return {
            ...(buildValidResponse(path) as object),
            warnings: [{ path: multilineText, message: multilineText }],
          };
        return undefined;
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
      service.respondWith(
        (_request, response) => void response.writeHead(400).end(JSON.stringify({ detail: 'no', problems })),
      );
      const { code, stderr } = await run('servers', 'list');
      assert.equal(code, 1);
      assert.match(stderr, /^error: [^\n]* Check the URL\.\n$/);
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
    service.respondWith((request, response) => {
      const at = new URL(request.url ?? '', url).pathname;
      response.setHeader('content-type', 'application/json');
      const respondWith = (status: number, value: object) => void response.writeHead(status).end(JSON.stringify(value));
      if (at === '/.well-known/oauth-protected-resource/api/v1')
        return respondWith(200, { resource: `${url}/api/v1`, authorization_servers: [url] });
      if (at === '/.well-known/oauth-authorization-server')
        return respondWith(200, {
          ...{ issuer: url, authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token` },
          ...{ registration_endpoint: `${url}/register`, response_types_supported: ['code'] },
          code_challenge_methods_supported: ['S256'],
        });
      if (at === '/register') {
        let text = '';
        request.on('data', (chunk) => (text += chunk));
        request.on('end', () => respondWith(201, { ...JSON.parse(text), client_id: id }));
        return;
      }
      if (at === '/token') return respondWith(200, { access_token: 'token', token_type: 'Bearer' });
      response.setHeader(
        'www-authenticate',
        `Bearer resource_metadata="${url}/.well-known/oauth-protected-resource/api/v1"`,
      );
      respondWith(401, { detail: 'no' });
    });
    const login = startLogin([url, '--no-browser'], { env });
    const authorization = new URL(await login.address).searchParams;
    const redirect = new URL(authorization.get('redirect_uri') ?? '');
    redirect.search = new URLSearchParams({
      code: 'code',
      state: authorization.get('state') ?? '',
      iss: url,
    }).toString();
    login.pasteLine(redirect.href);
    const { code, stderr } = await login.ended;
    assert.deepEqual([code, /cannot be stored: client_id/.test(stderr)], [1, true], stderr);
    assert.equal(readFileSync(path, 'utf8'), before);
    assert.deepEqual(readdirSync(join(folder, 'person/toolhost')).toSorted(), ['credentials.json', 'credentials.lock']);
  });
});
