import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { type Api, apis, buildTools, readQuestions } from '../support/api-catalogs/read-catalogs.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

const token = 'of-the-caller';

describe('the tool search of real APIs', () => {
  const toolhost = useFixture(startToolhost);
  before(async () => {
    for (const api of apis) {
      const tools = buildTools(api, 'https://api.example.com');
      await toolhost.createServer({ name: api, slug: `api-${api}`, tool_mode: 'search', tools });
    }
  });

  async function searchNames(api: Api, query: string): Promise<string[]> {
    const reply = await toolhost.callTool(`api-${api}`, token, 'search_tools', { query });
    return [...(reply.content[0]?.text ?? '').matchAll(/^- ([\w.-]+) \(/gm)].map(([, name = '']) => name);
  }

  for (const file of ['questions', 'unseen-questions'] as const) {
    it(`finds the right tool among the first three for 85%, among the first ten for 95% of ${file} [agent 1]`, async () => {
      const cases = readQuestions(file);
      assert.ok(cases.length >= (file === 'questions' ? 150 : 60));
      const ranks = await Promise.all(
        cases.map(async ({ api, query, expected }) => {
          const rank = (await searchNames(api, query)).findIndex((name) => expected.includes(name));
          return { query: `${api}: ${query}`, rank: rank < 0 ? Number.POSITIVE_INFINITY : rank + 1 };
        }),
      );
      const shareWithinRank = (maxRank: number) => ranks.filter(({ rank }) => rank <= maxRank).length / ranks.length;
      const lowRanked = ranks.filter(({ rank }) => rank > 3).map(({ query, rank }) => `${rank} ${query}`);
      assert.ok(shareWithinRank(3) >= 0.85, `first three: ${shareWithinRank(3)}\n${lowRanked.join('\n')}`);
      assert.ok(shareWithinRank(10) >= 0.95, `first ten: ${shareWithinRank(10)}\n${lowRanked.join('\n')}`);
    });
  }

  it('finds the own profile for "who am I", compound words, and synonyms [agent 1]', async () => {
    assert.ok((await searchNames('box', 'who am I')).includes('get_users_me'));
    assert.ok((await searchNames('zoom', 'voice mails')).includes('phone_user_voice_mails'));
    assert.ok((await searchNames('box', 'collaborators of a file')).includes('get_files_id_collaborations'));
  });

  it('ranks a tool first if the query is its name [agent 1]', async () => {
    for (const api of ['slack', 'asana'] as const)
      for (const { name } of buildTools(api, 'https://api.example.com'))
        assert.equal((await searchNames(api, String(name)))[0], name);
  });

  it('tolerates a typo, a word prefix, and arbitrary characters [agent 1]', async () => {
    assert.ok((await searchNames('github', 'create a relese')).slice(0, 3).includes('repos_create_release'));
    assert.ok((await searchNames('stripe', 'subscr')).length > 0);
    for (const query of ['的问题', '💥💥', '((((', '\u202e', 'a', '____', 'the of', 'x'.repeat(500)])
      await searchNames('github', query);
  });

  it('needs fewer than 1,500 tokens of tool definitions per API [agent 1]', async () => {
    for (const api of apis) {
      const { text } = await toolhost.rpc(`api-${api}`, token, 'tools/list');
      assert.ok(text.length / 4 < 1500, `${api}: ${text.length / 4} tokens`);
    }
  });
});
