import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Api, apis, questions, toolsOf } from '../support/catalogues/catalogues.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

const token = 'of-the-caller';

describe('the tool search of real APIs', () => {
  let toolhost: TestToolhost;
  before(async () => {
    toolhost = await startToolhost();
    for (const api of apis) {
      const tools = toolsOf(api, 'https://api.example.com');
      await toolhost.createServer({ name: api, slug: `api-${api}`, tool_mode: 'search', tools });
    }
  });
  after(() => toolhost.stop());

  async function namesFor(api: Api, query: string): Promise<string[]> {
    const reply = await toolhost.callTool(`api-${api}`, token, 'search_tools', { query });
    return [...(reply.content[0]?.text ?? '').matchAll(/^- ([\w.-]+) \(/gm)].map(([, name = '']) => name);
  }

  for (const [file, least] of [
    ['questions', 150],
    ['unseen-questions', 60],
  ] as const) {
    it(`finds the right tool among the first three for 85%, among the first ten for 95% of ${file} [agent 1]`, async () => {
      const asked = questions(file);
      assert.ok(asked.length >= least);
      const ranks = await Promise.all(
        asked.map(async ({ api, query, expected }) => {
          const rank = (await namesFor(api, query)).findIndex((name) => expected.includes(name));
          return { query: `${api}: ${query}`, rank: rank < 0 ? Number.POSITIVE_INFINITY : rank + 1 };
        }),
      );
      const share = (most: number) => ranks.filter(({ rank }) => rank <= most).length / ranks.length;
      const late = ranks.filter(({ rank }) => rank > 3).map(({ query, rank }) => `${rank} ${query}`);
      assert.ok(share(3) >= 0.85, `first three: ${share(3)}\n${late.join('\n')}`);
      assert.ok(share(10) >= 0.95, `first ten: ${share(10)}\n${late.join('\n')}`);
    });
  }

  it('finds the own profile for "who am I", compound words, and synonyms [agent 1]', async () => {
    assert.ok((await namesFor('box', 'who am I')).includes('get_users_me'));
    assert.ok((await namesFor('zoom', 'voice mails')).includes('phone_user_voice_mails'));
    assert.ok((await namesFor('box', 'collaborators of a file')).includes('get_files_id_collaborations'));
  });

  it('ranks a tool first if the query is its name [agent 1]', async () => {
    for (const api of ['slack', 'asana'] as const) {
      for (const { name } of toolsOf(api, 'https://api.example.com')) {
        assert.equal((await namesFor(api, String(name)))[0], name);
      }
    }
  });

  it('tolerates a typo, a word prefix, and arbitrary characters [agent 1]', async () => {
    assert.ok((await namesFor('github', 'create a relese')).slice(0, 3).includes('repos_create_release'));
    assert.ok((await namesFor('stripe', 'subscr')).length > 0);
    for (const query of ['的问题', '💥💥', '((((', '\u202e', 'a', '____', 'the of', 'x'.repeat(500)]) {
      await namesFor('github', query);
    }
  });

  it('needs fewer than 1,500 tokens of tool definitions per API [agent 1]', async () => {
    for (const api of apis) {
      const { text } = await toolhost.rpc(`api-${api}`, token, 'tools/list');
      assert.ok(text.length / 4 < 1500, `${api}: ${text.length / 4} tokens`);
    }
  });
});
