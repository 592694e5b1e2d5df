import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, describe, it } from 'node:test';
import { startAdversarialService } from '../support/toolhost/adversarial-service.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { startCommandService } from '../support/toolhost/command-world.ts';
import { type CommandResult, runToolhostCommand, spawnToolhost } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

/** Clears the screen, sets the title, and writes to the clipboard, then does the same with C1 control characters. */
const sequences = '\u001b[2J\u001b]0;title\u0007\u001b]52;c;ZXZpbA==\u0007\u009b2J\u009d0;title\u009c\b\r';
// biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for these.
const forbiddenSequences = /\u001b(?!\[(?:0|2|31|32|33)m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/;
/** Makes a child process believe that it writes to a terminal. */
const childAtTerminal = {
  TERM: 'xterm',
  NODE_OPTIONS: '--import=data:text/javascript,process.stdout.isTTY=process.stderr.isTTY=true',
};

describe('a start in local mode', () => {
  const fixtures = useFixtures();

  async function start(env: Record<string, string>): Promise<string> {
    const child = await startChildToolhost({ DATA_DIR: fixtures.folder(), ...env });
    await child.end();
    return child.output('stderr');
  }

  it('[ship 7] shows a person at a terminal the startup text without log lines before it, and others every log line', async () => {
    const atTerminal = await start(childAtTerminal);
    assert.match(atTerminal, /^\n {2}Dashboard {6}http:/);
    assert.match(atTerminal, /INFO.*stopping/);
    assert.doesNotMatch(atTerminal, /listening on/);
    assert.match(await start({ ...childAtTerminal, LOG_LEVEL: 'debug' }), /listening on/);
    const elsewhere = await start({});
    assert.match(elsewhere, /^\{"level":30,.*"msg":"listening on http:/m);
    assert.match(elsewhere, /^ {2}Dashboard {6}http:/m);
  });
});

describe('output to a terminal', async () => {
  const service = await startAdversarialService();
  after(() => service.close());
  const respondWith = (status: number, body: unknown) =>
    service.respondWith((_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });

  const run = (...args: string[]) => runToolhostCommand(args, { env: service.env, isTerminal: true });
  const assertHarmless = ({ stdout, stderr }: CommandResult) => {
    assert.doesNotMatch(stdout + stderr, forbiddenSequences);
    assert.match(stdout + stderr, /evil/);
  };
  const text = `evil${sequences}`;
  const errorBody = { code: 'x', detail: text, problems: [{ path: text, message: text }] };
  const actor = { actor_kind: 'key', actor_id: text, actor_name: text };
  const event = { id: 'e', at: '2026-11-22T10:00:00.000Z', ...actor, request_id: 'r', operation: text, target: text };

  it('[ship 7] contains no control sequences from error responses', async () => {
    for (const status of [400, 500]) {
      respondWith(status, errorBody);
      const ended = await run('servers', 'list');
      assert.equal(ended.code, 1);
      assertHarmless(ended);
    }
  });

  it('[ship 7] contains no control sequences from records, as text and as JSON', async () => {
    respondWith(200, { events: [{ ...event, detail: { [text]: text } }] });
    assertHarmless(await run('audit'));
    assertHarmless(await run('audit', '--json'));
  });

  it('[ship 7] contains no control sequences from error responses as JSON, while programs read the original text', async () => {
    respondWith(400, errorBody);
    const ended = await run('servers', 'list', '--json');
    assertHarmless(ended);
    assert.equal((JSON.parse(ended.stderr) as { error: { message: string } }).error.message, text);
  });

  it('[ship 7] contains no control sequences from records that are followed as JSON', async () => {
    respondWith(200, { events: [{ ...event, detail: {} }] });
    const child = spawnToolhost(['audit', '--follow', '--json'], { env: { ...childAtTerminal, ...service.env } });
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    child.kill('SIGINT');
    await once(child, 'close');
    assert.doesNotMatch(line, forbiddenSequences);
    assert.equal((JSON.parse(line) as { operation: string }).operation, text);
  });

  it('[ship 7] contains no control sequences from an imported API description', async () => {
    const get = { operationId: 'list', summary: text, responses: { 200: { description: text } } };
    const description = JSON.stringify({
      openapi: '3.0.0',
      info: { title: text, version: text, description: text },
      servers: [{ url: 'https://api.example.com' }],
      paths: { '/things': { get } },
    });
    const options = { isTerminal: true, input: description };
    assertHarmless(await runToolhostCommand(['import', '-', '--include', '*', '--out', '-'], options));
    assertHarmless(await runToolhostCommand(['import', '-', '--plan', '--list', 'all'], options));
  });

  it('[ship 7] contains no text in another order than stored', async () => {
    respondWith(400, { code: 'x', detail: 'evil \u202elaed\u202c \u2066x\u2069' });
    assert.doesNotMatch((await run('servers', 'list')).stderr, /[\u202a-\u202e\u2066-\u2069]/);
  });

  describe('in color', async () => {
    const upstream = await startRecordingUpstream();
    after(() => upstream.close());
    const { running, env, run: runCommand } = await startCommandService({ egressPorts: [upstream.port] });
    const runAtTerminal = (args: string[], more = {}) =>
      runCommand(args, { env: { ...env, ...more }, isTerminal: true });

    it('[ship 7] colors records and errors, unless NO_COLOR is set', async () => {
      await running.createServer(buildServerAt('painted', upstream.url));
      await running.callTool('painted', 'some-token', 'get');
      const { stdout } = await runAtTerminal(['calls']);
      assert.ok(stdout.includes('\u001b[32mok'), JSON.stringify(stdout));
      assert.ok(!stdout.includes('\u{fffd}'));
      assert.match((await runAtTerminal(['calls'], { NO_COLOR: '1' })).stdout, /^\S+ {2}ok {2}/);
      for (const args of [
        ['servers', 'get', 'none'],
        ['servers', 'gett'],
      ]) {
        const colored = await runAtTerminal(args);
        assert.ok(colored.stderr.startsWith('\u001b[31merror:\u001b[0m '), JSON.stringify(colored.stderr));
        assert.match((await runCommand(args)).stderr, /^error: /);
      }
    });

    it('[ship 7] indents JSON results for people, and keeps all digits', async () => {
      const body = '{"id":9007199254740993,"tags":["a"]}';
      upstream.on('GET /thing', () => ({ body, headers: { 'content-type': 'application/json' } }));
      await running.createServer(buildServerAt('read', upstream.url));
      const args = ['call', 'read', 'get', '--token', 'some-token'];
      const shown = await runAtTerminal(args);
      assert.equal(shown.stdout, '{\n  "id": 9007199254740993,\n  "tags": [\n    "a"\n  ]\n}\n');
      assert.equal((await runCommand(args)).stdout, `${body}\n`);
    });
  });
});
