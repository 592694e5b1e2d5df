import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { runInNewContext } from 'node:vm';
import { toPythonLiteral, toScriptLiteral } from '@toolhost/mcp-clients/literals';
import { type CallTarget, createCallSnippets } from '@toolhost/server/snippets/call-snippets';
import { toUpstreamCurl } from '../../apps/server/src/snippets/upstream-curl.ts';
import { root } from '../files.ts';
import { ensureProgram } from '../support/browser/ensure-program.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useToolhost } from '../support/toolhost/use-toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';

const secret = 'sk-live-0123456789';
const run = promisify(execFile);
/** Runs a command line as if a person had pasted it into a shell. */
const runInShell = (command: string, env: NodeJS.ProcessEnv = {}) =>
  run('/bin/sh', ['-c', command], { env: { ...process.env, ...env }, maxBuffer: 4_000_000 });

/** Texts that a shell, curl, or a programming language may misinterpret. */
const texts = [
  ...`'|''|"|\\|\\'|$HOME|$(id)|\`id\`|!!|@/etc/passwd|-X|--help|%00|~|*|[1-3]|{a,b}|#|&|;|<x|__proto__|é|日本`.split(
    '|',
  ),
  ...['', 'a\nb', '\n', '\t', `it's "$HOME"\n-X`, `\\'$(id)\n`, '\u0001\u2028', '😀\u200d', '\ufeff a '],
];
const values: unknown[] = [
  ...[...texts, true, false, null, 0, -1, 1.5, 1e21, 12345678901, [], {}],
  ...texts.map((text) => [JSON.parse(`{${JSON.stringify(text)}:[${JSON.stringify(text)},null]}`)]),
];

describe('code snippets of a call', () => {
  const { toolhost, upstream } = useToolhost();
  let key: string;
  let curlPath: string;
  let pythonPath: string;
  before(async () => {
    curlPath = await ensureProgram(['/usr/bin/curl', '/usr/local/bin/curl'], 'curl');
    pythonPath = await ensureProgram(['/usr/bin/python3', '/usr/local/bin/python3'], 'python3-minimal');
    key = await toolhost.createKey();
    const schema = {
      name: { type: 'string' },
      query: { type: 'string', in: 'query', optional: true },
      more: { type: 'object', optional: true },
    };
    const url = `${upstream.url}/things?fixed=[1]`;
    const headers = { 'X-Service': 'Key {{KEY}}' };
    const parts = { name: 'parts', method: 'POST', body: 'multipart', input_schema: { name: schema.name } };
    const tools = [
      buildToolAt(url, { method: 'POST', input_schema: schema, headers }),
      buildToolAt(`${upstream.url}/form`, parts),
    ];
    const authentication = { type: 'Bearer', token: secret };
    for (const [slug, more] of Object.entries({ copied: { tools }, locked: { tools, authentication } })) {
      await toolhost.createServer({ ...buildServerAt(slug, upstream.url), ...more });
      await toolhost.rest('PUT', `/servers/${slug}/secrets/KEY`, { body: { value: secret } });
    }
  });

  const post = async (path: string, body: Json) => {
    const reply = await toolhost.rest('POST', `/servers/${path}`, { body });
    assert.equal(reply.status, 200, reply.text);
    return reply.body;
  };
  /** Returns the request without the headers that differ between clients. */
  const toComparable = ({ method, url, headers, body }: RecordedRequest) => ({
    method,
    url,
    service: headers['x-service'],
    type: headers['content-type'],
    body: body.toString('utf8'),
  });
  const takeLastRequest = () => upstream.take().at(-1) ?? assert.fail('nothing was sent');

  it('[agent 5] curl sends exactly the request of the call, with a mask for each secret', async () => {
    for (const [index, value] of values.entries()) {
      const name = texts[index % texts.length];
      const body = {
        arguments: { name, ...(index % 3 > 0 && { query: name }), ...(index % 2 === 0 && { more: { value } }) },
      };
      const { curl } = (await post('copied/tools/get/preview', body)) as { curl: string };
      assert.equal(curl.includes(secret), false);
      upstream.take();
      await post('copied/tools/get/call', body);
      const sent = toComparable(takeLastRequest());
      await runInShell(curl.replace(/^curl/, `${curlPath} -s`));
      assert.deepEqual(toComparable(takeLastRequest()), { ...sent, service: 'Key ********' });
    }
  });

  it('[agent 5] curl sends the same multipart fields', async () => {
    const normalizeParts = ({ headers, body }: RecordedRequest) => {
      const boundary = /boundary=(.*)$/.exec(String(headers['content-type']))?.[1] ?? assert.fail();
      return body.toString('utf8').replaceAll(boundary, 'cut').replace(/^-+/gm, '--').replaceAll(/-+cut/g, '--cut');
    };
    for (const name of ['@/etc/passwd', '<x', 'a;type=text/html', '"q"', 'a\nb', '$HOME `id`', 'é=1']) {
      const body = { arguments: { name } };
      const { curl } = (await post('copied/tools/parts/preview', body)) as { curl: string };
      upstream.take();
      await post('copied/tools/parts/call', body);
      const sent = normalizeParts(takeLastRequest());
      await runInShell(curl.replace(/^curl/, `${curlPath} -s`));
      assert.equal(normalizeParts(takeLastRequest()), sent, name);
    }
  });

  it('[agent 5] curl reads a body from a file when it cannot be a program argument, and keeps empty headers', () => {
    const request = { method: 'POST' as const, origin: 'https://api.example.com', path: '/x' };
    const toCurl = (body: string) => toUpstreamCurl({ ...request, headers: [], body });
    assert.match(toCurl('a\0b'), /--data-binary @body$/);
    assert.match(toCurl('é'.repeat(80_000)), /--data-binary @body$/);
    assert.match(toCurl('e'.repeat(80_000)), /--data-raw 'e+'$/);
    const empty = toUpstreamCurl({ ...request, headers: ['X-Empty', ''], body: undefined });
    assert.equal(empty, "curl -X POST 'https://api.example.com/x' -H 'X-Empty;'");
  });

  const createTarget = (slug: string, args: Json): CallTarget => ({
    url: `${toolhost.url}/mcp/${slug}`,
    tool: 'get',
    arguments: args,
    credential: slug === 'copied' ? 'none' : 'api_key',
  });
  const getCode = (target: CallTarget, id: string) =>
    createCallSnippets(target).find((snippet) => snippet.id === id)?.code ?? assert.fail(id);

  it('[agent 5] curl calls the tool with exactly the same arguments at the MCP endpoint', async () => {
    for (const name of texts) {
      upstream.take();
      const sent = { name, more: { value: values } };
      const command = getCode(createTarget('locked', sent), 'mcp-curl');
      const { stdout } = await runInShell(command, { TOOLHOST_API_KEY: key });
      const { result } = JSON.parse(stdout) as { result?: { isError?: boolean } };
      assert.ok(result && result.isError !== true, stdout);
      assert.deepEqual(JSON.parse(takeLastRequest().body.toString('utf8')), sent);
    }
  });

  it('[agent 5] the TypeScript snippet runs, and reads the credential from the environment', async () => {
    const args = { name: `it's "$HOME" \`id\` \${1}\n日本`, more: { a: [null, true] } };
    upstream.take();
    await run(process.execPath, ['--input-type=module', '-e', getCode(createTarget('locked', args), 'typescript')], {
      cwd: root,
      env: { ...process.env, TOOLHOST_API_KEY: key },
    });
    assert.deepEqual(JSON.parse(takeLastRequest().body.toString('utf8')), args);
    assert.doesNotMatch(getCode(createTarget('copied', args), 'typescript'), /process\.env/);
  });

  it('[agent 5] arguments have the same values as JavaScript and Python literals', async () => {
    const json = JSON.stringify(values);
    const script = runInNewContext(`JSON.stringify(${toScriptLiteral(values)})`) as string;
    assert.equal(script, json);
    const program = 'import ast,json,sys; print(json.dumps(ast.literal_eval(sys.stdin.read())))';
    const pythonRun = run(pythonPath, ['-c', program], { env: { ...process.env, PYTHONUTF8: '1' } });
    pythonRun.child.stdin?.end(toPythonLiteral(values));
    assert.deepEqual(JSON.parse((await pythonRun).stdout), JSON.parse(json));
  });

  it('[agent 5] the Python snippet compiles', async () => {
    const args = { name: `"""it's\\`, more: [true, null, { deep: ['x'.repeat(80)] }] };
    for (const slug of ['copied', 'locked']) {
      const pythonRun = run(pythonPath, ['-c', 'import ast,sys; ast.parse(sys.stdin.read())']);
      pythonRun.child.stdin?.end(getCode(createTarget(slug, args), 'python'));
      await pythonRun;
    }
  });
});
