import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { serverAt, toolAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { toolhost } from '../support/toolhost/toolhost-command.ts';

describe('toolhost completion', () => {
  let running: TestToolhost;
  let folder: string;
  let env: Record<string, string>;
  before(async () => {
    running = await startToolhost();
    folder = mkdtempSync(join(tmpdir(), 'toolhost-completion-'));
    env = {
      HOME: folder,
      TOOLHOST_URL: running.url,
      TOOLHOST_API_KEY: await running.key(),
    };
    const tools = ['list_things', 'list_other_things', 'get_thing'].map((name) =>
      toolAt('https://api.example.com/things', { name }),
    );
    await running.createServer(serverAt('things', 'https://api.example.com', { tools }));
    await running.createServer(serverAt('thoughts', 'https://api.example.com'));
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await running.stop();
  });

  /** Returns what a shell can offer after these words. The last one is the word being typed. */
  async function found(typed: readonly string[]): Promise<{ words: string[]; files: boolean }> {
    const { stdout } = await toolhost(['complete', '--', ...typed], { env });
    const [kind, ...lines] = stdout.trimEnd().split('\n');
    return { files: kind === 'files', words: lines.map((line) => line.split('\t')[0] ?? '') };
  }

  /**
   * Asserts that a shell offers these words. A busy machine may exceed the completion timeout, so this retries, as a
   * person presses Tab again.
   */
  async function offers(typed: readonly string[], words: readonly string[], files = false): Promise<void> {
    await eventually(async () => {
      const offered = await found(typed);
      assert.deepEqual({ ...offered, words: offered.words.toSorted() }, { files, words });
    });
  }

  it('[ship 7] completes declared commands, options, and choices', async () => {
    await offers(['ver'], ['verify', 'versions']);
    await offers(['servers', 'u'], ['update']);
    await offers(['calls', '--o'], ['--outcome']);
    await offers(['calls', '--outcome', 'un'], ['unavailable', 'unreachable']);
    await offers(['servers', 'create', ''], [], true);
    const { words } = await found(['']);
    assert.deepEqual([words.includes('servers'), words.includes('complete')], [true, false]);
  });

  it('[ship 7] completes server slugs and tool names by asking the service', async () => {
    await offers(['servers', 'get', 'th'], ['things', 'thoughts']);
    await offers(['versions', 'thi'], ['things']);
    await offers(['call', 'things', 'list'], ['list_other_things', 'list_things']);
    await offers(['calls', '--server', 'things', '--tool', 'get'], ['get_thing']);
  });

  it('[ship 7] prints nothing for a service that is down, slow, or adversarial, and never prints a key', async () => {
    const names = ['$(touch pwned)', 'a b', '`id`', 'fine'];
    let answers = true;
    const hostile: Server = createServer((_request, response) => {
      if (!answers) return;
      const at = '2026-01-01T00:00:00.000Z';
      const server = { id: 's', name: '\u001b[2J', url: 'x', access: 'oauth', tool_count: 1, version: 1 };
      const servers = names.map((slug) => ({ ...server, slug, created_at: at, updated_at: at, created_by: 'x' }));
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ servers }));
    });
    await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`;
    const ask = (at: string) =>
      toolhost(['complete', '--', 'servers', 'get', ''], { env: { ...env, TOOLHOST_URL: at } });
    try {
      await eventually(async () => {
        const { stdout } = await ask(url);
        assert.deepEqual(stdout.trimEnd().split('\n'), ['words', 'fine\t [2J'], stdout);
      });
      answers = false;
      for (const at of [url, 'http://127.0.0.1:1', 'nonsense']) {
        const end = await ask(at);
        assert.deepEqual([end.code, end.stderr], [0, ''], at);
        assert.ok(!end.stdout.includes(env.TOOLHOST_API_KEY ?? ''));
      }
    } finally {
      hostile.closeAllConnections();
      hostile.close();
    }
  });
});
