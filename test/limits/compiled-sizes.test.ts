import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerConfig, buildToolConfig } from '../support/valid-configs.ts';

describe('a compiled server', () => {
  it('[find A6] is limited to 12 million characters, and the check reports what counts', async (t) => {
    const toolhost = await startToolhost();
    t.after(() => toolhost.stop());
    const anyOf = Array.from({ length: 20 }, (_, i) => ({ pattern: `${i}${'abcdefghij'.repeat(98)}` }));
    const input_schema = { type: 'object', properties: { a: { type: 'string', anyOf } } };
    const tool = { method: 'POST', input_schema };
    const tools = Array.from({ length: 100 }, (_, i) => buildToolConfig({ name: `t${i}`, ...tool }));
    const { body } = await toolhost.rest('POST', '/check', { body: buildServerConfig({ tools }) });
    const [problem, ...more] = body.problems as { path: string; message: string }[];
    assert.deepEqual([problem?.path, more], ['', []]);
    assert.match(
      problem?.message ?? '',
      /^has a compiled size of 17\d{6} characters: its text plus 500 per tool, .*; allowed: 12000000; split it into several servers$/,
    );
  });
});
