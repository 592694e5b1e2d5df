import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type CommandResult, runToolhostCommand, spawnToolhost } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** Clears the screen, sets the title, and writes to the clipboard, then does the same with C1 control characters. */
const sequences = '\u001b[2J\u001b]0;title\u0007\u001b]52;c;ZXZpbA==\u0007\u009b2J\u009d0;title\u009c\b\r';
// biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for these.
const forbiddenSequences = /\u001b(?!\[(?:0|2|31|32|33)m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/;
/** Makes a child process believe that it writes to a terminal. */
const childAtTerminal = {
  TERM: 'xterm',
  NODE_OPTIONS: '--import=data:text/javascript,process.stdout.isTTY=process.stderr.isTTY=true',
};

describe('output to a terminal', () => {
  let adversary: Server;
  let url: string;
  let nextResponse: { status: number; body: unknown };
  before(async () => {
    adversary = createServer((_request, response) => {
      response
        .writeHead(nextResponse.status, { 'content-type': 'application/json' })
        .end(JSON.stringify(nextResponse.body));
    });
    await new Promise<void>((resolve) => adversary.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(adversary.address() as AddressInfo).port}`;
  });
  after(() => {
    adversary.closeAllConnections();
    adversary.close();
  });

  const run = (args: readonly string[]) =>
    runToolhostCommand(args, { env: { TOOLHOST_URL: url, TOOLHOST_API_KEY: 'some-key' }, isTerminal: true });
  const assertHarmless = ({ stdout, stderr }: CommandResult) => {
    assert.doesNotMatch(stdout + stderr, forbiddenSequences);
    assert.match(stdout + stderr, /evil/);
  };
  const textWithSequences = `evil${sequences}`;
  const at = '2026-11-22T10:00:00.000Z';

  it('[ship 7] contains no control sequences from error responses', async () => {
    for (const status of [400, 500]) {
      nextResponse = {
        status,
        body: { detail: textWithSequences, problems: [{ path: textWithSequences, message: textWithSequences }] },
      };
      const ended = await run(['servers', 'list']);
      assert.equal(ended.code, 1);
      assertHarmless(ended);
    }
  });

  it('[ship 7] contains no control sequences from records, as text and as JSON', async () => {
    const event = {
      id: 'e',
      at,
      actor_kind: 'key',
      actor_id: textWithSequences,
      actor_name: textWithSequences,
      request_id: 'r',
    };
    nextResponse = {
      status: 200,
      body: {
        events: [
          {
            ...event,
            operation: textWithSequences,
            target: textWithSequences,
            detail: { [textWithSequences]: textWithSequences },
          },
        ],
      },
    };
    assertHarmless(await run(['audit']));
    assertHarmless(await run(['audit', '--json']));
  });

  it('[ship 7] contains no control sequences from error responses as JSON, while programs read the original text', async () => {
    nextResponse = {
      status: 400,
      body: { detail: textWithSequences, problems: [{ path: textWithSequences, message: textWithSequences }] },
    };
    const ended = await run(['servers', 'list', '--json']);
    assertHarmless(ended);
    assert.equal((JSON.parse(ended.stderr) as { error: { message: string } }).error.message, textWithSequences);
  });

  it('[ship 7] contains no control sequences from records that are followed as JSON', async () => {
    const event = {
      id: 'e',
      at,
      actor_kind: 'key',
      actor_id: textWithSequences,
      request_id: 'r',
      operation: textWithSequences,
      detail: {},
    };
    nextResponse = { status: 200, body: { events: [event] } };
    const child = spawnToolhost(['audit', '--follow', '--json'], {
      env: { ...childAtTerminal, TOOLHOST_URL: url, TOOLHOST_API_KEY: 'some-key' },
    });
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    child.kill('SIGINT');
    await once(child, 'close');
    assert.doesNotMatch(line, forbiddenSequences);
    assert.equal((JSON.parse(line) as { operation: string }).operation, textWithSequences);
  });

  it('[ship 7] contains no control sequences from an imported API description', async () => {
    const description = JSON.stringify({
      openapi: '3.0.0',
      info: { title: textWithSequences, version: textWithSequences, description: textWithSequences },
      servers: [{ url: 'https://api.example.com' }],
      paths: {
        '/things': {
          get: {
            operationId: 'list',
            summary: textWithSequences,
            responses: { 200: { description: textWithSequences } },
          },
        },
      },
    });
    const options = { isTerminal: true, input: description };
    assertHarmless(await runToolhostCommand(['import', '-', '--include', '*', '--out', '-'], options));
    assertHarmless(await runToolhostCommand(['import', '-', '--plan', '--list', 'all'], options));
  });

  it('[ship 7] contains no text in another order than stored', async () => {
    nextResponse = { status: 400, body: { detail: 'evil \u202elaed\u202c \u2066x\u2069' } };
    assert.doesNotMatch((await run(['servers', 'list'])).stderr, /[\u202a-\u202e\u2066-\u2069]/);
  });

  describe('in color', () => {
    let running: TestToolhost;
    let upstream: RecordingUpstream;
    before(async () => {
      upstream = await startRecordingUpstream();
      running = await startToolhost({ egressPorts: [upstream.port] });
    });
    after(() => Promise.all([running.stop(), upstream.close()]));

    it('[ship 7] colors records and errors, unless NO_COLOR is set', async () => {
      await running.createServer(buildServerAt('painted', upstream.url));
      await running.callTool('painted', 'some-token', 'get');
      const env = { TOOLHOST_URL: running.url, TOOLHOST_API_KEY: await running.createKey() };
      const { stdout } = await runToolhostCommand(['calls'], { env, isTerminal: true });
      assert.ok(stdout.includes('\u001b[32mok'), JSON.stringify(stdout));
      assert.ok(!stdout.includes('\u{fffd}'));
      const uncolored = await runToolhostCommand(['calls'], { env: { ...env, NO_COLOR: '1' }, isTerminal: true });
      assert.match(uncolored.stdout, /^\S+ {2}ok {2}/);
      for (const args of [
        ['servers', 'get', 'none'],
        ['servers', 'gett'],
      ]) {
        const colored = await runToolhostCommand(args, { env, isTerminal: true });
        assert.ok(colored.stderr.startsWith('\u001b[31merror:\u001b[0m '), JSON.stringify(colored.stderr));
        assert.match((await runToolhostCommand(args, { env })).stderr, /^error: /);
      }
    });

    it('[ship 7] indents JSON results for people, and keeps all digits', async () => {
      upstream.on('GET /thing', () => ({
        body: '{"id":9007199254740993,"tags":["a"]}',
        headers: { 'content-type': 'application/json' },
      }));
      await running.createServer(buildServerAt('read', upstream.url));
      const env = {
        TOOLHOST_URL: running.url,
        TOOLHOST_API_KEY: await running.createKey(),
        TOOLHOST_TOKEN: 'some-token',
      };
      const shown = await runToolhostCommand(['call', 'read', 'get'], { env, isTerminal: true });
      assert.equal(shown.stdout, '{\n  "id": 9007199254740993,\n  "tags": [\n    "a"\n  ]\n}\n');
      assert.equal(
        (await runToolhostCommand(['call', 'read', 'get'], { env })).stdout,
        '{"id":9007199254740993,"tags":["a"]}\n',
      );
    });
  });
});
