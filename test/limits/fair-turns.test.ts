import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { serverAt } from '../support/configs.ts';
import { holdBody } from '../support/toolhost/held-body.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

const names = (count: number, value: string) =>
  `{${Array.from({ length: count }, (_, n) => `"n${n.toString(36)}":${value}`).join(',')}}`;

/** Reading it takes several turns of the event loop. */
const longPing = `{"jsonrpc":"2.0","id":1,"method":"ping","params":${names(28_000, '1E-400')}}`;

describe('[find A2] turns of the event loop', () => {
  let toolhost: TestToolhost;
  const keys = { busy: '', other: '' };
  before(async () => {
    toolhost = await startToolhost();
    for (const workspace of ['busy', 'other'] as const) {
      keys[workspace] = await toolhost.key({ workspace });
      const made = await toolhost.rest('POST', '/servers', {
        key: keys[workspace],
        body: serverAt(workspace, 'https://api.example.com'),
      });
      assert.equal(made.status, 201, made.text);
    }
  });
  after(() => toolhost.stop());

  const post = (path: string, token: string, body: string) =>
    fetch(toolhost.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body,
    });

  it('are shared by workspace: a long message comes among the first, beside sixty of another', async () => {
    const authorization = `Bearer ${keys.busy}`;
    const held = await Promise.all(
      Array.from({ length: 60 }, () => holdBody(`${toolhost.url}/mcp/busy`, { authorization }, longPing)),
    );
    let answered = 0;
    const busy = held.map(async ({ finish }) => {
      const { status } = await finish();
      answered++;
      return status;
    });
    assert.equal((await post('/mcp/other', keys.other, longPing)).status, 200);
    assert.ok(answered < 30, `${answered} of 60 were answered before`);
    assert.deepEqual([...new Set(await Promise.all(busy))], [200]);
  });
});
