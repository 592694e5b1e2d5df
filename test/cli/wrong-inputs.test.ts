import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { operations } from '../../apps/server/src/operations/index.ts';
import { createTestFolder, startCommandService } from '../support/toolhost/command-world.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** A command with a mistake, and its message. Usage errors exit with 2. */
type WrongInput = {
  title: string;
  args: readonly string[];
  message: RegExp;
  code?: number;
  env?: Record<string, string>;
  input?: string;
};

const operationNames = Object.keys(operations).filter((name) => /[A-Z]/.test(name));

/** Names of the REST API, of operations and their fields, of Node, and of the parsers, which no message may contain. */
const foreignTerms = new RegExp(
  [
    '/api/v1',
    `\\b(?:${operationNames.join('|')})\\b`,
    'answers\\.',
    '\\b(?:servers|views)\\[\\d',
    '^\\s+(?:document|url|include|answers): ',
    'command-argument|commander|zod|Expected \\d|Allowed choices',
    '\\bE[A-Z]{4,}\\b|mkdir|\\bat position|mappings|circular|undefined|\\[object',
    '^\\s+at ',
  ].join('|'),
  'm',
);

describe('a command with a mistake', async () => {
  const folder = createTestFolder();
  const { running, env } = await startCommandService();
  const otherService = await startToolhost();
  const page = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>Welcome</title><h1>Welcome</h1>');
  });
  await once(page.listen(0, '127.0.0.1'), 'listening');
  const pageUrl = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
  // Responds like FastAPI.
  const otherApi = await startRecordingUpstream();
  otherApi.on('*', () => ({ status: 404, body: { detail: 'Not Found' } }));
  const apiUrl = otherApi.url;
  after(() => Promise.all([otherService.stop(), otherApi.close(), new Promise((resolve) => page.close(resolve))]));
  const input_schema = { id: { type: 'integer' } };
  await running.createServer({
    name: 'Shop',
    slug: 'shop',
    tools: [buildToolAt('https://shop.example.com', { name: 'get_order', input_schema })],
  });

  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const emptyFolder = join(folder, 'empty');
  mkdirSync(emptyFolder);
  const shop = write('shop.yaml', 'name: Shop\nslug: shop\ntools: []\n');
  const notes = write('notes.txt', 'Dear reader, these are notes about the API');
  const html = write('page.html', '<!doctype html><html><body>Welcome</body></html>');
  const image = write('logo.png', 'PNG\0\0');
  const paths = { '/pets': { get: { operationId: 'list_pets', responses: { 200: { description: 'ok' } } } } };
  const describeApi = (more: object) =>
    JSON.stringify({ openapi: '3.0.3', info: { title: 'Pets', version: '1' }, ...more, paths });
  const api = write('api.json', describeApi({ servers: [{ url: 'https://pets.example.com' }] }));
  otherApi.on('GET /openapi.json', () => ({ body: describeApi({}) }));
  await running.createServer({
    name: 'Members',
    slug: 'members',
    authentication: { type: 'Bearer' },
    oauth: {
      client_id: 'x',
      client_secret: 'x',
      authorization_url: 'https://login.example.com/authorize',
      token_url: 'https://login.example.com/token',
    },
    tools: [buildToolAt('https://members.example.com', { name: 'get_order', input_schema })],
  });
  const apiWithoutServer = write('no-server.json', describeApi({}));
  const otherKey = await otherService.createKey();
  const callKey = await running.createKey({ scopes: ['call'] });
  const freePort = await findFreePort();
  const { port } = new URL(running.url);
  const noProfile = { XDG_CONFIG_HOME: join(folder, 'config') };
  const database = { DATA_DIR: running.dataDir };
  const createKey = ['keys', 'create', '--name', 'me', '--scopes', 'call'];
  const call = ['call', 'shop', 'get_order'];

  const wrongInputs: readonly WrongInput[] = [
    {
      title: 'a misspelled command',
      args: ['serv'],
      code: 2,
      message: /unknown command "serv"\. Did you mean serve\?/,
    },
    { title: 'an unknown command', args: ['frobnicate'], code: 2, message: /"frobnicate"\nAdd --help for usage/ },
    { title: 'a misspelled flag', args: ['servers', 'list', '--jsn'], code: 2, message: /Did you mean --json\?/ },
    { title: 'an unknown flag', args: ['servers', 'list', '--frob'], code: 2, message: /unknown option "--frob"\nAdd/ },
    { title: 'a missing argument', args: ['servers', 'get'], code: 2, message: /the argument <slug> is missing/ },
    {
      title: 'an extra argument',
      args: ['servers', 'list', 'x'],
      code: 2,
      message: /list takes no argument, but found "x"/,
    },
    {
      title: 'an option without its value',
      args: [...call, '--args'],
      code: 2,
      message: /--args needs a value: --args <json>/,
    },
    {
      title: 'a missing option',
      args: ['keys', 'create', '--scopes', 'call'],
      code: 2,
      message: /--name <name> is missing/,
    },
    {
      title: 'options that exclude each other',
      args: [...createKey, '--quiet', '--json'],
      code: 2,
      message: /--quiet and --json exclude each other/,
    },
    {
      title: 'an unknown shell',
      args: ['completion', 'powershell'],
      code: 2,
      message: /<shell>: found "powershell"; allowed: bash, zsh, fish/,
    },
    {
      title: 'a tool argument without a name',
      args: [...call, '42'],
      code: 2,
      message: /<name=value>: found "42"; allowed: name=value/,
    },
    {
      title: 'tool arguments that are not JSON',
      args: [...call, '--args', '{id: 42}'],
      code: 2,
      message: /--args: found .*a JSON object, such as '{"id": 42}'/,
    },
    {
      title: 'a misspelled tool',
      args: ['call', 'shop', 'get_ordr'],
      message: /has no tool "get_ordr"; did you mean `get_order`\?/,
    },
    {
      title: 'a misspelled slug',
      args: ['servers', 'get', 'shp'],
      message: /no such server in this workspace; did you mean `shop`\?/,
    },
    {
      title: 'a view that does not exist',
      args: [...call, 'id=1', '--view', 'desk'],
      message: /the server has no view "desk"; it has none/,
    },
    {
      title: 'a service address without a scheme',
      args: ['servers', 'list', '--url', 'localhost:8080'],
      code: 2,
      message: /--url: found "localhost:8080"; allowed: an http/,
    },
    {
      title: 'the URL of a server as the service',
      args: ['servers', 'list', '--url', `${running.url}/mcp/shop`],
      message: /is the URL of a server\. Use the URL of the service: http:\/\/127\.0\.0\.1:\d+$/m,
    },
    {
      title: 'an address that is not Toolhost',
      args: ['servers', 'list', '--url', pageUrl],
      message: /not like this version of toolhost\. Check the URL/,
    },
    {
      title: 'an address where nothing listens',
      args: ['servers', 'list', '--url', `http://127.0.0.1:${freePort}`],
      message: /no service is listening at .*Start it with "bin\/toolhost serve"/,
    },
    {
      title: 'https for a plain HTTP service',
      args: ['servers', 'list', '--url', `https://127.0.0.1:${port}`],
      message: /does not speak TLS\. Try http:\/\//,
    },
    {
      title: 'no key',
      args: ['servers', 'list'],
      env: { ...noProfile, TOOLHOST_URL: running.url },
      message: /no API key\. Set TOOLHOST_API_KEY or pass --key/,
    },
    {
      title: 'a key of another service',
      args: ['servers', 'list', '--key', otherKey],
      message: /is not valid for the service at .*keys create --name cli/,
    },
    {
      title: 'a key with a space',
      args: ['servers', 'list', '--key', 'thk_a b'],
      message: /Copy it again, without spaces/,
    },
    {
      title: 'a key that may not read',
      args: ['servers', 'list', '--key', callKey],
      message: /needs the scope manage:read; .*keys create .* manage:read/,
    },
    {
      title: 'a profile that does not exist',
      args: ['servers', 'list', '--profile', 'nope'],
      env: noProfile,
      message: /no profile "nope".*login URL --profile nope/,
    },
    {
      title: 'a slug that exists',
      args: ['servers', 'create', shop],
      message: /"shop" is used by a server .*"bin\/toolhost servers update FILE", or choose another slug/,
    },
    {
      title: 'a file that does not exist',
      args: ['servers', 'create', 'nowhere.yaml'],
      message: /nowhere\.yaml: there is no such file\. Check the path/,
    },
    {
      title: 'a folder for a file',
      args: ['servers', 'create', emptyFolder],
      message: /empty: is a folder\. Name a file/,
    },
    {
      title: 'a folder without configuration files',
      args: ['apply', emptyFolder],
      message: /is a folder without \.json, \.yaml, or \.yml files/,
    },
    {
      title: 'a file for a folder',
      args: ['export', '--out', shop],
      message: /exists and is not a folder\. Name another folder/,
    },
    {
      title: 'an API description as a configuration',
      args: ['apply', api],
      message: /an OpenAPI document, not a configuration; import it with "bin\/toolhost import FILE"/,
    },
    {
      title: 'YAML with a mistake',
      args: ['servers', 'create', write('bad.yaml', 'name: x\n  slug: [a\n')],
      message: /is not YAML: syntax error at line 1, column 7\. Check/,
    },
    {
      title: 'JSON with a mistake',
      args: ['servers', 'create', write('bad.json', '{"name": "x",}')],
      message: /is not JSON: syntax error at line 1, column 14\. Check/,
    },
    {
      title: 'prose as a configuration',
      args: ['apply', notes],
      message: /notes\.txt: is not a configuration; allowed: an object with name/,
    },
    {
      title: 'an image as a configuration',
      args: ['servers', 'create', image],
      message: /is not a text file\. Name a JSON or YAML file/,
    },
    {
      title: 'a web page for a document',
      args: ['import', pageUrl],
      message: /127\.0\.0\.1:\d+: Found a web page without an API description\. Import OpenAPI/,
    },
    {
      title: 'an HTML file for a document',
      args: ['import', html],
      message: /page\.html: Found a web page without an API description/,
    },
    {
      title: 'prose for a document',
      args: ['import', notes],
      message: /notes\.txt: not an API description; allowed: OpenAPI 3/,
    },
    {
      title: 'no document on standard input',
      args: ['import', '-'],
      message: /standard input is empty\. Pipe an API description into it/,
    },
    {
      title: 'a document URL without a scheme',
      args: ['import', 'localhost:8000/openapi.json'],
      message: /For a URL, write: http:\/\/localhost:8000\/openapi\.json/,
    },
    {
      title: 'a document URL that does not exist',
      args: ['import', `${running.url}/nothing`],
      message: /responded with HTTP 404\. Check the URL of the API description/,
    },
    {
      title: 'a document without a server URL',
      args: ['import', apiWithoutServer],
      message: /no server URL\. Add --server https:\/\/api\.example\.com/,
    },
    {
      title: 'an import with a slug that exists',
      args: ['import', api, '--set', 'credential=none', '--slug', 'shop'],
      message: /--slug: "shop" is used by .*choose another slug/,
    },
    {
      title: 'an import of operations that do not exist',
      args: ['import', api, '--set', 'credential=none', '--include', 'dogs'],
      message: /--include: no operation matches dogs; list the tags with --plan/,
    },
    {
      title: 'an answer to a question that was not asked',
      args: ['import', api, '--set', 'color=red'],
      message: /--set color=…: the document has no such question; allowed: server/,
    },
    {
      title: 'a server URL without a scheme',
      args: ['import', api, '--server', 'pets.example.com'],
      message: /--server: found "pets\.example\.com"; allowed: a URL such as/,
    },
    {
      title: 'a re-import of a server that was not imported',
      args: ['reimport', 'shop'],
      message: /<slug>: this server was not imported; use "bin\/toolhost import"/,
    },
    {
      title: 'a port that is not a number',
      args: ['serve', '--port', 'http'],
      code: 2,
      message: /--port: found "http"; allowed: a whole number from 0 to 65535/,
    },
    {
      title: 'a port in use',
      args: ['serve', '--port', port, '--data-dir', join(folder, 'data')],
      message: /port \d+ is in use; stop the process .*or set PORT or --port/,
    },
    {
      title: 'a file as the data folder',
      args: ['serve', '--port', '0', '--data-dir', shop],
      message: /shop\.yaml is a file; set DATA_DIR or --data-dir to another folder/,
    },
    {
      title: 'an address of another machine',
      args: ['serve', '--port', '0', '--data-dir', join(folder, 'data')],
      env: { HOST: '203.0.113.9', LOCAL_MODE: 'container' },
      message: /HOST: 203\.0\.113\.9 is not an address of this machine; set 127\.0\.0\.1/,
    },
    {
      title: 'an unknown scope',
      args: ['keys', 'create', '--name', 'x', '--scopes', 'admin'],
      code: 2,
      message: /--scopes: found "admin"; allowed: one or more of manage/,
    },
    {
      title: 'a time span in words',
      args: [...createKey, '--expires', 'tomorrow'],
      code: 2,
      message: /--expires: found "tomorrow"; allowed: .* such as 12h/,
    },
    {
      title: 'a key for a server that does not exist',
      args: [...createKey, '--server', 'shp'],
      env: database,
      message: /--server: there is no server "shp" .*did you mean `shop`\?/,
    },
    {
      title: 'a key name of 1,000 characters',
      args: ['keys', 'create', '--name', 'x'.repeat(1000), '--scopes', 'call'],
      env: database,
      message: /--name: found .*allowed: at most 100 characters/,
    },
    {
      title: 'a negative limit',
      args: [...createKey, '--calls-per-second', '-5'],
      code: 2,
      message: /--calls-per-second: found "-5"; allowed: a whole number from 1/,
    },
    {
      title: 'a folder without a database',
      args: ['keys', 'list'],
      env: { DATA_DIR: emptyFolder },
      message: /there is no database in .*; set DATA_DIR to the service's folder/,
    },
    {
      title: 'a deletion without confirmation',
      args: ['servers', 'delete', 'shop'],
      message: /would delete the server shop.*nothing was changed\. Add --yes to confirm/,
    },
    {
      title: 'a deleted server that does not exist',
      args: ['servers', 'restore', 'shp'],
      message: /list those that can be restored with "bin\/toolhost servers deleted"/,
    },
    {
      title: 'a version in words',
      args: ['versions', 'show', 'shop', 'latest'],
      code: 2,
      message: /<version>: found "latest"; allowed: a version number, such as 3/,
    },
    {
      title: 'a misspelled field',
      args: ['tools', 'update', 'shop', 'get_order', '--set', 'urll=x'],
      message: /urll: unknown field; did you mean `url`\?/,
    },
    {
      title: 'a secret on the command line',
      args: ['secrets', 'set', 'shop', 'KEY', 'hunter2'],
      code: 2,
      message: /the value must not be an argument; use standard input/,
    },
    {
      title: 'a secret name with a space',
      args: ['secrets', 'set', 'shop', 'my key'],
      input: 'x',
      message: /<name>: found "my key"; allowed: a letter or _/,
    },
    {
      title: 'a variable name with a space',
      args: ['apply', shop, '--env', 'a b'],
      code: 1,
      message: /--env: found "a b"; allowed: the name of an environment variable/,
    },
    {
      title: 'a file that is not a backup',
      args: ['verify', shop],
      env: database,
      message: /the backup is damaged: .*use another backup/,
    },
    {
      title: 'calls of a server that does not exist',
      args: ['calls', '--server', 'shopp'],
      message: /no such server in this workspace; did you mean `shop`\?/,
    },
    {
      title: 'the URL of another API',
      args: ['servers', 'list', '--url', apiUrl],
      message: /responded with 404, but not like this version of toolhost\. Check the URL/,
    },
    {
      title: 'a call of a server with a login',
      args: ['call', 'members', 'get_order', 'id=7'],
      message:
        /the server members has a login\. Log in .*: bin\/toolhost doctor \S+\/mcp\/members --login --call get_order/,
    },
    {
      title: 'a document of an API on this machine that the service may not call',
      args: ['import', `${apiUrl}/openapi.json`],
      message:
        /address "http:\S+" cannot be called: .*EGRESS_ALLOW=127\.0\.0\.1:\d+\. Start the service with .* add --server/,
    },
    {
      title: 'a login at an address that is not Toolhost',
      args: ['login', pageUrl, '--no-browser'],
      env: noProfile,
      message: /not like toolhost\. Check the URL/,
    },
  ];

  for (const { title, args, message, code = 1, env: commandEnv = env, input = '' } of wrongInputs) {
    it(`says what to do about ${title}`, async () => {
      const result = await runToolhostCommand(args, { env: { ...commandEnv }, input });
      assert.deepEqual([result.code, result.stdout], [code, ''], result.stderr);
      assert.match(result.stderr, message);
      assert.doesNotMatch(result.stderr, foreignTerms);
      assert.ok(!result.stderr.includes('hunter2'));
    });
  }

  it('describes wrong files with the same terms when it checks them', async () => {
    const { code, stdout } = await runToolhostCommand(['check', notes, api, image]);
    assert.equal(code, 1);
    assert.match(
      stdout,
      /notes\.txt: is not a configuration[\s\S]*import it with "bin\/toolhost import FILE"[\s\S]*is not a text file/,
    );
    assert.doesNotMatch(stdout, foreignTerms);
  });
});
