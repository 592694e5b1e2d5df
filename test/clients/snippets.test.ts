import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { ClientConnection } from '@toolhost/mcp-clients/client';
import { type ClientSnippet, clients, createSnippets } from '@toolhost/mcp-clients/clients';
import fc from 'fast-check';
import { parse as parseToml } from 'smol-toml';
import { parse as parseYaml } from 'yaml';
import { root } from '../files.ts';
import { getRunCount } from '../sets.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';

const run = promisify(execFile);
const key = 'tlh_key-of-the-test_0123456789';
const url = 'https://tools.example.com/mcp/my-server';
const withKey: ClientConnection = { name: 'my-server', url, token: key };
const withLogin: ClientConnection = { name: 'my-server', url, token: undefined };
/** A caller's own token may contain any character that a header may. */
const withSpecialCharacters: ClientConnection = { ...withKey, token: `a'b"c\\d$e\`f#g: {h} %i !j` };

/** Runs a snippet in a shell, with stub programs. Returns the arguments of the program that it starts. */
async function getArguments(snippet: ClientSnippet, folder: string): Promise<string[]> {
  const { stdout } = await run('/bin/sh', ['-eu', '-c', snippet.code], {
    env: { PATH: folder, OPENAI_API_KEY: 'of-openai', ANTHROPIC_API_KEY: 'of-anthropic', ACCESS_TOKEN: 'of-the-login' },
  });
  return JSON.parse(stdout) as string[];
}

/** Returns all texts of a value, at any depth. */
function collectTexts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(collectTexts);
}

describe('client snippets', () => {
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-snippets-'));
  const script = `#!${process.execPath}\nconsole.log(JSON.stringify(process.argv.slice(2)));\n`;
  for (const program of ['claude', 'gemini', 'qwen', 'curl'])
    writeFileSync(join(folder, program), script, { mode: 0o755 });
  after(() => rmSync(folder, { recursive: true }));

  /** Returns the texts that the client reads from a snippet, after parsing its format. */
  async function parseSnippet(snippet: ClientSnippet): Promise<string[]> {
    const { format, code } = snippet;
    if (format === 'json') return collectTexts(JSON.parse(code));
    if (format === 'toml') return collectTexts(parseToml(code));
    if (format === 'yaml') return collectTexts(parseYaml(code));
    if (format === 'address') return [new URL(code).href];
    if (format === 'form') return code.split('\n').map((line) => line.slice(line.indexOf(': ') + 2));
    if (format === 'sh') {
      const words = await getArguments(snippet, folder);
      const body = words[words.indexOf('-d') + 1] ?? '';
      return body.startsWith('{') ? [...words, ...collectTexts(JSON.parse(body))] : words;
    }
    await checkSyntax(snippet);
    // The string literals of a program, whose escapes are those of JSON.
    return [...code.matchAll(/"(?:[^"\\\n]|\\.)*"/g)].map(([text]) => JSON.parse(text) as string);
  }

  it('[find D5] has no space in an argument of a local program, which Windows would split', () => {
    type Local = { args?: string[]; env?: Record<string, string> };
    const local = [withKey, withLogin, withSpecialCharacters].flatMap((connection) =>
      createSnippets(connection).flatMap(({ format, code }) => {
        const config = (format === 'json' ? JSON.parse(code) : {}) as { mcpServers?: Record<string, Local> };
        return Object.values(config.mcpServers ?? {}).flatMap(({ args, env }) =>
          args ? [{ args, env, connection }] : [],
        );
      }),
    );
    assert.ok(local.length >= 3);
    for (const { args, env, connection } of local) {
      assert.ok(!args.some((argument) => /\s/.test(argument)), args.join('\n'));
      assert.deepEqual(Object.values(env ?? {}), connection.token === undefined ? [] : [`Bearer ${connection.token}`]);
    }
  });

  async function checkSyntax({ format, code, id }: ClientSnippet): Promise<void> {
    const file = join(folder, `${id}.${format === 'python' ? 'py' : 'mts'}`);
    writeFileSync(file, code);
    if (format === 'ts') await run(process.execPath, ['--check', file]);
    // The tests do not require Python.
    else if (await run('python3', ['--version']).catch(() => undefined))
      await run('python3', ['-c', 'import ast, sys; ast.parse(open(sys.argv[1]).read())', file]);
  }

  const connections = { 'a login': withLogin, 'a token with special characters': withSpecialCharacters };
  for (const [kind, to] of Object.entries(connections)) {
    for (const snippet of createSnippets(to)) {
      it(`[ship 6] parses the ${snippet.name} snippet for a server with ${kind}, and finds the URL and the credential`, async () => {
        const texts = await parseSnippet(snippet);
        assert.ok(texts.includes(url), JSON.stringify(texts));
        const bearers = texts.filter((text) => /^(Authorization: )?Bearer /.test(text) && !text.endsWith('of-openai'));
        if (to.token === undefined) {
          const hasNoKey = bearers.every((text) => text.endsWith('of-the-login') || text === 'Bearer ');
          return assert.ok(hasNoKey, JSON.stringify(bearers));
        }
        // Codex and the hosted tools take the bare token.
        const sentValues = [...bearers.map((text) => text.replace(/^(Authorization: )?Bearer /, '')), ...texts];
        if (snippet.id === 'codex') assert.match(snippet.command ?? '', /export MY_SERVER_TOKEN=/);
        else assert.ok(sentValues.includes(to.token), JSON.stringify(texts));
      });
    }
  }

  it('[ship 6] puts no credential into a link', () => {
    for (const { name, install } of createSnippets(withKey)) {
      if (!install) continue;
      const link = new URL(install.href);
      const config = link.searchParams.get('config') ?? '';
      const carried = [install.href, decodeURIComponent(install.href), Buffer.from(config, 'base64').toString()];
      assert.ok(!carried.some((text) => text.includes(key)), name);
    }
    const linked = createSnippets(withLogin).flatMap(({ name, install }) => (install ? [name] : []));
    assert.deepEqual(linked, ['Claude', 'Cursor', 'VS Code', 'Goose']);
  });

  it('[ship 6] puts the name and the URL into links', () => {
    const links = new Map(createSnippets(withLogin).map(({ id, install }) => [id, new URL(install?.href ?? url)]));
    const [claude, cursor, vscode, goose] = ['claude', 'cursor', 'vscode', 'goose'].map((id) => links.get(id));
    assert.equal(claude?.searchParams.get('connectorUrl'), url);
    assert.deepEqual(JSON.parse(Buffer.from(cursor?.searchParams.get('config') ?? '', 'base64').toString()), { url });
    const vscodeConfig = JSON.parse(decodeURIComponent(vscode?.search.slice(1) ?? ''));
    assert.deepEqual(vscodeConfig, { name: 'my-server', type: 'http', url });
    assert.deepEqual([goose?.searchParams.get('url'), goose?.searchParams.get('type')], [url, 'streamable_http']);
    const installUrl = new URL(createSnippets(withKey).find(({ id }) => id === 'vscode')?.install?.href ?? '');
    const { headers, inputs } = JSON.parse(decodeURIComponent(installUrl.search.slice(1))) as Record<string, unknown>;
    assert.deepEqual(headers, { Authorization: `Bearer \${input:token}` });
    assert.partialDeepStrictEqual(inputs, [{ type: 'promptString', id: 'token', password: true }]);
  });

  it('[ship 6] keeps every token inside its word of the shell command', async () => {
    const claudeCode = (token: string) => createSnippets({ ...withKey, token })[0] as ClientSnippet;
    await fc.assert(
      fc.asyncProperty(fc.stringMatching(/^[!-~]([ -~]{0,30}[!-~])?$/), async (token) => {
        fc.pre(!/^\$\w+$/.test(token));
        assert.deepEqual((await getArguments(claudeCode(token), folder)).at(-1), `Authorization: Bearer ${token}`);
      }),
      { numRuns: getRunCount(25) },
    );
  });

  it("[ship 6] gives Claude and ChatGPT the server's own host, and only for a server with a login", () => {
    const hostUrl = 'https://my-server.tools.example.com/mcp';
    const hosted = createSnippets({ ...withLogin, hostUrl }).filter(({ format }) => format === 'address');
    const shown = hosted.map(({ name, code }) => `${name} ${code}`);
    assert.deepEqual(shown, [`Claude ${hostUrl}`, `ChatGPT ${hostUrl}`]);
    assert.ok(createSnippets(withKey).every(({ format }) => format !== 'address'));
  });

  it('[ship 6] gives each form fields for a key or for a login, and the server name', () => {
    const formsFor = (to: ClientConnection) => createSnippets(to).filter(({ format }) => format === 'form');
    const name = 'Server-with-a-name-of-many-letters';
    const [keyed, withoutKey] = [formsFor({ ...withKey, name }), formsFor({ ...withLogin, name })];
    const names = keyed.map((snippet) => snippet.name);
    assert.deepEqual(names, ['n8n', 'Dify', 'Open WebUI', 'Copilot Studio', 'Le Chat', 'Perplexity']);
    const loginForms = withoutKey.map(({ id, code }) => [id, code.includes(key), /OAuth|Dynamic/.test(code)]);
    const expected = keyed.map(({ id }) => [id, false, true]);
    assert.deepEqual(loginForms, expected);
    const dify = keyed.find(({ id }) => id === 'dify')?.code ?? '';
    assert.match(dify, /^Server Identifier: [a-z0-9_-]{24}$/m);
  });

  it('[ship 6] names a documentation page, checked recently, for each client', () => {
    assert.equal(new Set(clients.map(({ id }) => id)).size, clients.length);
    for (const { name, documentation } of clients) {
      assert.match(documentation.url, /^https:\/\//, name);
      assert.ok(documentation.checked >= '2026-11-22', name);
    }
  });

  describe('against a server', async () => {
    const toolhost = await startToolhost({ env: { DEMO: '1' } });
    after(() => toolhost.stop());

    it('[ship 6] runs the TypeScript SDK program, which lists the tools', async () => {
      const connection = { name: 'projects', url: `${toolhost.url}/mcp/projects`, token: 'local-example-key' };
      const { code } = createSnippets(connection).find(({ id }) => id === 'sdk') ?? assert.fail();
      const args = ['--input-type=module-typescript', '--eval', `${code}\nawait client.close();`];
      const { stdout } = await run(process.execPath, args, { cwd: root });
      assert.match(stdout, /list_projects/);
    });
  });
});
