import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { getResultText } from '../support/one-tool.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const secret = 'sk-live-0123456789';
const issue = (id: number, more: Json = {}) => ({
  id,
  node_id: `I_${id}`,
  title: `Issue ${id}`,
  url: `https://api.example.com/issues/${id}`,
  html_url: `https://example.com/issues/${id}`,
  assignee: null,
  user: { login: `user${id}`, avatar_url: `https://avatars.example.com/${id}` },
  ...more,
});

type Field = { path: string; bytes: number; times: number; useless?: string; always?: string };
type Proposal = {
  answers: number;
  fields: Field[];
  current?: string[];
  proposed?: string[];
  tokens: { whole: number; now: number; proposed?: number; asked?: number };
};

for (const engine of engines)
  describe(`response_fields proposal from captured calls on ${engine}`, () => {
    const fixtures = useFixtures();
    const upstream = fixtures.start(startRecordingUpstream);
    const world = fixtures.start(() => startToolhostOnEngine(engine, { egressPorts: [upstream.port] }));
    let key: string;
    before(async () => {
      key = await world.toolhost.createKey();
    });

    const createCapturedServer = async (slug: string, tool: Json = {}) => {
      const tools = [tool, { name: 'other' }].map((one) => buildToolAt(`${upstream.url}/issues`, one));
      const authentication = { type: 'Bearer', token: secret };
      await world.toolhost.createServer({ ...buildServerAt(slug, upstream.url), authentication, tools });
      const { status, text } = await world.toolhost.rest('POST', `/servers/${slug}/capture`, { body: { hours: 1 } });
      assert.equal(status, 200, text);
    };
    const call = async (slug: string, body: unknown, tool = 'get') => {
      upstream.on('GET /issues', () => ({ body }));
      await world.advanceTime(1);
      return world.toolhost.callTool(slug, key, tool, {});
    };
    const propose = async (slug: string, body: Json = {}): Promise<Proposal> => {
      const reply = await world.toolhost.rest('POST', `/servers/${slug}/tools/get/response-fields`, { body });
      assert.equal(reply.status, 200, reply.text);
      return reply.body as unknown as Proposal;
    };
    const getLastTokens = async (slug: string) => {
      const { calls } = (await world.toolhost.rest('GET', `/calls?slug=${slug}&limit=1`)).body as { calls: Json[] };
      return Number(calls[0]?.estimated_tokens);
    };

    it('[agent 3] predicts the token savings that updateTool with the proposed fields achieves', async () => {
      await createCapturedServer('saves');
      assert.deepEqual((await propose('saves')).answers, 0);
      const answers = [[1, 2, 3].map((id) => issue(id)), [4, 5].map((id) => issue(id))];
      for (const answer of answers) await call('saves', answer);
      await call('saves', issue(9), 'other');
      const before = await propose('saves');
      assert.equal(before.answers, 2);
      assert.deepEqual(before.proposed, ['id', 'title', 'html_url', 'user.login']);
      assert.equal(
        before.tokens.whole,
        Math.ceil(answers.reduce((sum, one) => sum + JSON.stringify(one).length, 0) / 4),
      );
      assert.equal(before.tokens.now, before.tokens.whole);
      assert.deepEqual(
        before.fields
          .filter(({ useless }) => useless)
          .map(({ path, useless }) => [path, useless])
          .toSorted(),
        [
          ['assignee', 'empty'],
          ['node_id', 'id'],
          ['url', 'link'],
          ['user.avatar_url', 'picture'],
        ],
      );
      const set = { slug: 'saves', tool: 'get', response_fields: before.proposed };
      const version = Number(((await world.toolhost.rest('GET', '/servers/saves')).body.server as Json).version);
      const changed = await world.toolhost.callTool('manage', key, 'updateTool', set);
      assert.equal(changed.isError, undefined, JSON.stringify(changed));
      const { server } = (await world.toolhost.rest('GET', '/servers/saves')).body as { server: Json };
      assert.equal(server.version, version + 1);
      let tokens = 0;
      for (const answer of answers) {
        await call('saves', answer);
        tokens += await getLastTokens('saves');
      }
      assert.ok(Math.abs(tokens - Number(before.tokens.proposed)) <= answers.length, `${tokens}`);
      const now = await propose('saves');
      assert.deepEqual([now.answers, now.current], [4, before.proposed]);
      assert.ok(Math.abs(now.tokens.now - 2 * tokens) <= 8, JSON.stringify(now.tokens));
      const titleProposal = await propose('saves', { fields: ['title'] });
      assert.ok(Number(titleProposal.tokens.asked) < titleProposal.tokens.now);
    });

    it('[agent 3] measures long responses completely, ignores text, and uses only calls with the current response_transform', async () => {
      await createCapturedServer('long', { response_transform: 'items' });
      const items = Array.from({ length: 3000 }, (_, id) => issue(id));
      await call('long', { items, total: 3000 });
      const proposal = await propose('long');
      assert.equal(proposal.answers, 1);
      assert.equal(proposal.fields.find(({ path }) => path === 'title')?.times, 3000);
      assert.equal(proposal.tokens.whole, Math.ceil(JSON.stringify(items).length / 4));
      upstream.on('GET /issues', () => ({ headers: { 'content-type': 'text/plain' }, body: 'no JSON' }));
      const patch = (body: Json) => world.toolhost.rest('PATCH', '/servers/long/tools/get', { body });
      assert.equal((await patch({ response_transform: null })).status, 200);
      assert.equal((await propose('long')).answers, 0);
      await world.toolhost.callTool('long', key, 'get', {});
      assert.equal((await propose('long')).answers, 0);
      await call('long', issue(1));
      assert.equal((await propose('long')).answers, 1);
    });

    it('[agent 3] redacts credentials in names and values', async () => {
      await createCapturedServer('echoes');
      for (const id of [1, 2])
        await call(
          'echoes',
          [1, 2, 3].map(() => ({ [secret]: 1, said: `Key ${secret}`, id })),
        );
      const { status, text } = await world.toolhost.rest('POST', '/servers/echoes/tools/get/response-fields', {});
      assert.equal(status, 200, text);
      assert.ok(!text.includes(secret) && text.includes('Key [redacted]'), text);
    });

    it('[agent 3] returns a short text with the next step to an agent', async () => {
      await createCapturedServer('agents');
      const proposeAsAgent = async () => {
        const input = { slug: 'agents', tool: 'get' };
        return getResultText(await world.toolhost.callTool('manage', key, 'proposeResponseFields', input));
      };
      assert.match(await proposeAsAgent(), /captureCalls/);
      await call(
        'agents',
        [1, 2, 3].map((id) => issue(id)),
      );
      const text = await proposeAsAgent();
      assert.match(
        text,
        /updateTool \{"slug":"agents","tool":"get","response_fields":\["id","title","html_url","user.login"\]\}/,
      );
      assert.match(text, /tokens, \d+% less than now/);
      const misspelled = { slug: 'agents', tool: 'gte' };
      const unknownTool = await world.toolhost.callTool('manage', key, 'proposeResponseFields', misspelled);
      assert.match(JSON.stringify(unknownTool), /no such tool.*get/);
    });
  });
