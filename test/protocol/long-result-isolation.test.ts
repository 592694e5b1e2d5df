import assert from 'node:assert/strict';
import { request } from 'node:http';
import { describe, it } from 'node:test';
import { callerToken, getResultText, startOneTool } from '../support/one-tool.ts';
import { createRandomInt, seed } from '../support/seeded-numbers.ts';
import { useFixture } from '../support/use-fixtures.ts';

/** Number of clients that call simultaneously, and of calls of each. */
const clients = 30;
const callsPerClient = 12;
/** Lengths around those from which memory is used again. */
const maxBytes = 70_000;

/** Calls a tool and disconnects as soon as the first bytes of the response arrive. */
async function callAndDisconnect(url: string, id: string): Promise<void> {
  const params = { name: 'run', arguments: { id } };
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${callerToken}` };
  await new Promise<void>((resolve) => {
    const sent = request(url, { method: 'POST', headers }, (response) => {
      response.destroy();
      resolve();
    });
    sent.on('error', () => resolve());
    sent.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }));
  });
}

describe('long results', () => {
  const fixture = useFixture(() =>
    startOneTool({ env: { CONCURRENT_CALLS: '0', CALLS_PER_SECOND: '0', CONCURRENT_CALLS_PER_KEY: '0' } }),
  );

  for (const transform of [undefined, '.rows'])
    it(`[find B2] have only the bytes of their own response, with ${transform ? 'a part' : 'all'} of it`, async () => {
      const { upstream, toolhost, createToolServer, call } = fixture;
      upstream.on('GET /rows', ({ url }) => {
        const id = new URL(url, upstream.url).searchParams.get('id') ?? '';
        const length = Number(id.split('-')[2]);
        return { body: { rows: Array.from({ length: Math.ceil(length / (id.length + 9)) }, () => ({ id })) } };
      });
      const slug = await createToolServer({
        url: '/rows',
        input_schema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
        ...(transform && { response_transform: transform }),
      });
      await Promise.all(
        Array.from({ length: clients }, async (_, client) => {
          const randomInt = createRandomInt(seed + client);
          for (let n = 0; n < callsPerClient; n++) {
            const id = `${client}-${n}-${randomInt(maxBytes)}`;
            if (client % 5 === 0) {
              await callAndDisconnect(`${toolhost.url}/mcp/${slug}`, id);
              continue;
            }
            const result: unknown = JSON.parse(getResultText(await call(slug, { id })));
            const rows = (transform ? result : (result as { rows: unknown }).rows) as { id: string }[];
            assert.deepEqual([...new Set(rows.map((row) => row.id))], rows.length > 0 ? [id] : [], `TEST_SEED=${seed}`);
          }
        }),
      );
    });
});
