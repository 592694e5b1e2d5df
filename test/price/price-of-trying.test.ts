import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { outputOf } from '../support/oauth/managing-agent.ts';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';
import type { Json, ToolReply } from '../support/toolhost/toolhost.ts';

const megabytes = 1024 * 1024;

type Shown = {
  content: { type: string; text?: string; size?: number; resource?: Json }[];
  structured_content?: unknown;
  left_out?: string;
  estimated_tokens: number;
};

describe('CPU budget of test calls and previews', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost();
    const run = {
      name: 'run',
      description: 'Takes what this test sends.',
      method: 'POST',
      input_schema: { type: 'object', properties: { a: {} } },
    };
    const url = `${priced.upstream.url}/run`;
    const tools = [
      { ...run, url },
      { ...run, name: 'form', url, body: 'form' },
      { ...run, name: 'multipart', url, body: 'multipart' },
    ];
    const made = await priced.rest('POST', '/servers', { name: 'Tried', slug: 'tried', tools });
    assert.equal(made.status, 201, made.text);
  });
  after(() => priced.stop());

  const answerWith = (type: string, body: string | Buffer) =>
    priced.upstream.on('POST /run', () => ({ headers: { 'content-type': type }, body }));
  /** Calls the tool over REST and through the management server within the CPU budget. Asserts equal results. */
  const tried = async (what: string): Promise<Shown> => {
    const path = '/servers/tried/tools/run/call';
    const { status, body, text } = await priced.costsLittle(`${what} by REST`, () => priced.rest('POST', path, {}));
    assert.equal(status, 200, text.slice(0, 500));
    const byAgent = await priced.costsLittle(`${what} by an agent`, () =>
      priced.call('manage', 'callTool', '{"slug":"tried","tool":"run"}'),
    );
    const shown = outputOf(byAgent.body.result as ToolReply) as Shown;
    // Each call stores its own file, so file IDs differ.
    const withoutIds = (content: unknown) => JSON.stringify(content).replaceAll(/file_\w{22}/g, 'file');
    assert.equal(withoutIds(shown.content), withoutIds(body.content));
    return body as Shown;
  };
  const list = (item: string, bytes: number) =>
    `[${Array(Math.floor(bytes / (item.length + 1)))
      .fill(item)
      .join(',')}]`;
  const textOf = ({ content }: Shown) => content[0]?.text ?? '';

  it('[find A2] returns the beginning and the length of a 10 MB response within the CPU budget', async () => {
    const bodies: Record<string, [type: string, body: string]> = {
      numbers: ['application/json', list('1.10', 9.9 * megabytes)],
      objects: ['application/json', list('{"a":1}', 9.9 * megabytes)],
      text: ['text/plain', '"Zeile"\n'.repeat(1_200_000)],
      signs: ['text/plain', '\u0001'.repeat(9 * megabytes)],
      characters: ['text/plain', `x${'😀'.repeat(2_400_000)}`],
    };
    for (const [what, [type, body]] of Object.entries(bodies)) {
      answerWith(type, body);
      const shown = await tried(what);
      assert.ok(body.startsWith(textOf(shown)) && textOf(shown).length >= 262_143, what);
      assert.equal(shown.structured_content, undefined);
      // JSON escapes count, as in a call record.
      assert.ok(shown.estimated_tokens >= body.length / 4, what);
      assert.match(shown.left_out ?? '', /^The result is \d+ bytes long\. Only the first 262144 characters/);
    }
  });

  it('[find A2] previews a 1 MB request within the CPU budget, with a curl command that reads the body from a file', async () => {
    const texts = ["'", '\\"', 'é', '\\u0001'];
    for (const tool of ['run', 'form', 'multipart']) {
      for (const piece of texts) {
        const args = `{"a":"${piece.repeat(1_000_000 / Buffer.byteLength(piece))}"}`;
        const what = `${piece} in ${tool}`;
        const path = `/servers/tried/tools/${tool}/preview`;
        const { status, body, text } = await priced.costsLittle(`${what} by REST`, () =>
          priced.rest('POST', path, `{"arguments":${args}}`),
        );
        assert.equal(status, 200, text.slice(0, 300));
        const { request, curl } = body as { request: { body: string }; curl: string };
        assert.match(request.body.slice(-40), /… \(\d+ (characters|fields) in all\)$/);
        assert.match(curl, /--data-binary @body$|--config fields$/);
        await priced.costsLittle(`${what} by an agent`, () =>
          priced.call('manage', 'previewToolCall', `{"slug":"tried","tool":"${tool}","arguments":${args}}`),
        );
      }
    }
  });
});
