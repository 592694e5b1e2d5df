import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, it } from 'node:test';
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

const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));
/** Returns a tool with explicit defaults, as in stored configurations. */
const stored = (fields: Json): Json =>
  buildToolConfig({
    method: 'POST',
    headers: {},
    input_schema: {},
    response_transform: '.',
    timeout_ms: 10_000,
    ...fields,
  });
const withArgument = (a: Json): Json => ({ type: 'object', properties: { a, b: { type: 'string' } } });
const makeHeavyConfig = (a: Json, count = 1) =>
  buildServerConfig({ tools: times(count, (i) => stored({ name: `t${i}`, input_schema: withArgument(a) })) });
const makePatterns = (make: (i: number) => string, count: number) => ({
  type: 'string',
  anyOf: times(count, (i) => ({ pattern: make(i) })),
});
const heavyTools = makeHeavyConfig({ enum: times(30_000, (i) => i) }).tools as Json[];
const smallTools = times(400, (i) => stored({ name: `small_${i}`, method: 'GET' }));
const viewWithFixedArgument = (v: number) => ({ tools: [{ name: 't0', arguments: { b: `x${v}` } }] });

const configs: Record<string, Json> = {
  'long patterns': makeHeavyConfig(
    makePatterns((i) => `${i}${'abcdefghij'.repeat(98)}`, 20),
    100,
  ),
  'sets in patterns': makeHeavyConfig(
    makePatterns((i) => `${i}${'[ab]'.repeat(240)}`, 20),
    50,
  ),
  'small schemas': makeHeavyConfig({ anyOf: times(1700, (i) => ({ minLength: i })) }, 20),
  'one heavy tool in twenty views': buildServerConfig({
    tools: [...heavyTools, ...smallTools],
    views: Object.fromEntries(times(20, (v) => [`v${v}`, viewWithFixedArgument(v)])),
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
