import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { respondJson, serverEntry, startAdversarialService } from '../support/toolhost/adversarial-service.ts';
import { createTestFolder, startCommandService } from '../support/toolhost/command-world.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

describe('toolhost completion', async () => {
  const { running, env: serviceEnv } = await startCommandService();
  const env = { HOME: createTestFolder(), ...serviceEnv };
  const tools = ['list_things', 'list_other_things', 'get_thing'].map((name) =>
    buildToolAt('https://api.example.com/things', { name }),
  );
  await running.createServer(buildServerAt('things', 'https://api.example.com', { tools }));
  await running.createServer(buildServerAt('thoughts', 'https://api.example.com'));

  /** Returns what a shell can offer after these words. The last one is the word being typed. */
  async function getCompletions(typedWords: readonly string[]): Promise<{ words: string[]; files: boolean }> {
    const { stdout } = await runToolhostCommand(['complete', '--', ...typedWords], { env });
    const [kind, ...lines] = stdout.trimEnd().split('\n');
    return { files: kind === 'files', words: lines.map((line) => line.split('\t')[0] ?? '') };
  }

  /**
   * Asserts that a shell offers these words. A busy machine may exceed the completion timeout, so this retries, as a
   * person presses Tab again.
   */
  async function assertOffers(typedWords: readonly string[], words: readonly string[], files = false): Promise<void> {
    await eventually(async () => {
      const offered = await getCompletions(typedWords);
      assert.deepEqual({ ...offered, words: offered.words.toSorted() }, { files, words });
    });
  }

  it('[ship 7] completes declared commands, options, and choices', async () => {
    await assertOffers(['ver'], ['verify', 'versions']);
    await assertOffers(['servers', 'u'], ['update']);
    await assertOffers(['calls', '--o'], ['--outcome']);
    await assertOffers(['calls', '--outcome', 'un'], ['unavailable', 'unreachable']);
    await assertOffers(['servers', 'create', ''], [], true);
    const { words } = await getCompletions(['']);
    assert.deepEqual([words.includes('servers'), words.includes('complete')], [true, false]);
  });

  it('[ship 7] completes server slugs and tool names by asking the service', async () => {
    await assertOffers(['servers', 'get', 'th'], ['things', 'thoughts']);
    await assertOffers(['versions', 'thi'], ['things']);
    await assertOffers(['call', 'things', 'list'], ['list_other_things', 'list_things']);
    await assertOffers(['calls', '--server', 'things', '--tool', 'get'], ['get_thing']);
  });

  it('[ship 7] prints nothing for a service that is down, slow, or adversarial, and never prints a key', async () => {
    const names = ['$(touch pwned)', 'a b', '`id`', 'fine'];
    const adversary = await startAdversarialService();
    adversary.respondWith(
      respondJson(() => ({ servers: names.map((slug) => serverEntry(slug, { name: '\u001b[2J' })) })),
    );
    const { url } = adversary;
    const complete = (at: string) =>
      runToolhostCommand(['complete', '--', 'servers', 'get', ''], { env: { ...env, TOOLHOST_URL: at } });
    try {
      await eventually(async () => {
        const { stdout } = await complete(url);
        assert.deepEqual(stdout.trimEnd().split('\n'), ['words', 'fine\t [2J'], stdout);
      });
      adversary.respondWith(() => undefined);
      for (const at of [url, 'http://127.0.0.1:1', 'nonsense']) {
        const ended = await complete(at);
        assert.deepEqual([ended.code, ended.stderr], [0, ''], at);
        assert.ok(!ended.stdout.includes(env.TOOLHOST_API_KEY ?? ''));
      }
    } finally {
      adversary.close();
    }
  });
});
