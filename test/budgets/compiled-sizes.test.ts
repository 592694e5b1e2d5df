import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { makeObject, times } from '../support/long-values.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerConfig, buildToolConfig } from '../support/valid-configs.ts';

const child = join(import.meta.dirname, '..', 'support', 'compiled-growth.ts');

/** Measures the heap growth from compiling a whole configuration, and the size that is accounted for it, in bytes. */
async function measureGrowth(config: Json): Promise<{ grown: number; counted: number }> {
  // The child must not inherit the flags of the test runner.
  const forked = fork(child, { execArgv: [] });
  const message = once(forked, 'message');
  const exited = once(forked, 'exit');
  forked.send(JSON.stringify(config));
  const [growth] = (await Promise.race([message, exited.then(([code]) => assert.fail(`ended with ${code}`))])) as [
    { grown: number; counted: number },
  ];
  forked.disconnect();
  await exited;
  return growth;
}
/** Returns a tool with explicit defaults, as in stored configurations. */
const stored = (fields: Json): Json =>
  buildToolConfig({ headers: {}, input_schema: {}, response_transform: '.', timeout_ms: 10_000, ...fields });
const makeHeavyConfig = (count: number, a: Json) => {
  const input_schema = { type: 'object', properties: { a, b: { type: 'string' } } };
  return buildServerConfig({ tools: times(count, (i) => stored({ name: `t${i}`, method: 'POST', input_schema })) });
};
const makePatterns = (piece: string) => ({ type: 'string', anyOf: times(20, (i) => ({ pattern: `${i}${piece}` })) });
const heavyTools = makeHeavyConfig(1, { enum: times(30_000, (i) => i) }).tools as Json[];
const smallTools = times(400, (i) => stored({ name: `small_${i}` }));

const configs: Record<string, Json> = {
  'long patterns': makeHeavyConfig(100, makePatterns('abcdefghij'.repeat(98))),
  'sets in patterns': makeHeavyConfig(50, makePatterns('[ab]'.repeat(240))),
  'small schemas': makeHeavyConfig(20, { anyOf: times(1700, (i) => ({ minLength: i })) }),
  'one heavy tool in twenty views': buildServerConfig({
    tools: [...heavyTools, ...smallTools],
    views: makeObject(20, (v) => [`v${v}`, { tools: [{ name: 't0', arguments: { b: `x${v}` } }] }]),
  }),
};

describe('[find A6] memory accounting of compiled servers', () => {
  // The accounting estimates ten bytes per character, so the test allows a margin.
  for (const [name, config] of Object.entries(configs)) {
    it(`accounts for at least two thirds of the memory that a compiled server uses: ${name}`, async () => {
      const { grown, counted } = await measureGrowth(config);
      if (process.env.TEST_LOG) console.log(name, (grown / 1e6).toFixed(1), (counted / 1e6).toFixed(1));
      assert.ok(grown < 1.5 * counted, `${name}: uses ${grown} bytes, accounted for ${counted}`);
    });
  }
});
