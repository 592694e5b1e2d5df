import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parsePattern } from '@toolhost/json-schema/pattern-syntax';
import { StepBudget } from '@toolhost/json-schema/step-budget';
import fc from 'fast-check';
import { createPatternMatcher } from '../../packages/json-schema/src/pattern-match.ts';
import { getRunCount } from '../sets.ts';
import { getErrorText, getResultText, type OneToolFixture, startOneTool } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerConfig, buildToolConfig, checkConfiguration, findToolProblems } from '../support/valid-configs.ts';

/** Returns true if our engine finds the pattern in the text, and undefined for a pattern that it rejects. */
function findsPattern(source: string, text: string): boolean | undefined {
  const parsed = parsePattern(source);
  return 'fault' in parsed ? undefined : createPatternMatcher(source)(text, new StepBudget(1e9));
}

/**
 * Returns Node's result with the flag `u` where the pattern allows it, as JSON Schema recommends. The added alternative
 * never matches. Without it, V8 14 does not find `/[^a]$/u` in an emoji.
 */
function nodeFindsPattern(source: string, text: string): boolean {
  return new RegExp(`(?:${source})|(?!)`, allowsUnicode(source) ? 'u' : '').test(text);
}

function allowsUnicode(source: string): boolean {
  try {
    return new RegExp(source, 'u').unicode;
  } catch {
    return false;
  }
}

describe('patterns', () => {
  const letters = ['a', 'b', '-', '_', '1', 'é', '😀', '\n', ' ', '\ud83d', '\u2028', '\u00a0', '.', ']', '{', '/'];
  const raw = String.raw;
  const atom = fc.oneof(
    ...[
      ['a', 'b', 'é', '😀', '1', '-', '_', '.', '^', '$', '/', ' '],
      raw`\d \D \w \W \s \S \b \B \n \. \- \/ \_ \] \0`.split(' '),
      raw`\x61 \u0061 \u{1f600} \ud83d\ude00 \cJ \p{L} \P{Lu} \p{Script=Latin}`.split(' '),
      raw`[] [^] [a-b] [^a-b] [\w-] [-a] [a-] [\w-.] [.\]] [\b1] [😀-😂]`.split(' '),
      raw`[\d-a-z] [a\-z] [^\s\S] [\u0061-\x62] [\p{L}-] [[] { } ] a{ {1 \u61`.split(' '),
    ].map((sources) => fc.constantFrom(...sources)),
  );
  const pattern = fc.letrec((tie) => ({
    node: fc.oneof(
      { depthSize: 'medium' },
      atom,
      fc.tuple(tie('node'), tie('node')).map((two) => two.join('')),
      fc.tuple(tie('node'), tie('node')).map((two) => `(?:${two.join('|')})`),
      fc.tuple(fc.constantFrom('(', '(?:', '(?<n>'), tie('node')).map(([open, node]) => `${open}${node})`),
      fc
        .tuple(tie('node'), fc.constantFrom('*', '+', '?', '*?', '{2}', '{0}', '{1,}', '{0,2}', '{1,3}?'))
        .map(([node, count]) => `(?:${node})${count}`),
      fc.tuple(atom, fc.constantFrom('*', '+?', '?', '{2}', '{1,2}', '{,2}')).map((two) => two.join('')),
    ),
  })).node as fc.Arbitrary<string>;
  const text = fc.array(fc.constantFrom(...letters), { maxLength: 7 }).map((parts) => parts.join(''));

  it('[conf 5] match the same texts as in Node', () => {
    let compared = 0;
    fc.assert(
      fc.property(pattern, fc.array(text, { minLength: 5, maxLength: 10 }), (source, texts) => {
        for (const sampleText of texts) {
          // Node also looks for \B between the halves of a surrogate pair.
          if (source.includes('\\B') && /[\ud800-\udfff]/.test(sampleText)) continue;
          const ownResult = findsPattern(source, sampleText);
          if (ownResult === undefined) return;
          compared++;
          assert.equal(ownResult, nodeFindsPattern(source, sampleText), JSON.stringify([source, sampleText]));
        }
      }),
      { numRuns: getRunCount(4000) },
    );
    assert.ok(compared > getRunCount(10_000), String(compared));
  });

  it('[conf 5] match, reject, and are refused as recorded for 450 expressions, half of them from real API descriptions', () => {
    for (const line of readFileSync(join(import.meta.dirname, 'patterns.golden.jsonl'), 'utf8')
      .trim()
      .split('\n')) {
      const [source, ...expected] = JSON.parse(line) as [string, string] | [string, string[], string[]];
      if (typeof expected[0] === 'string') {
        const parsed = parsePattern(source);
        assert.equal('fault' in parsed && parsed.fault.startsWith(expected[0]), true, line);
        continue;
      }
      for (const [texts, isMatch] of [[expected[0], true] as const, [expected[1] ?? [], false] as const]) {
        for (const sampleText of texts) {
          const label = JSON.stringify([source, sampleText]);
          assert.equal(findsPattern(source, sampleText), isMatch, label);
          assert.equal(nodeFindsPattern(source, sampleText), isMatch, label);
        }
      }
    }
  });

  it('[conf 5] take steps in proportion to the text', () => {
    const countSteps = (source: string, sampleText: string): number => {
      const parsed = parsePattern(source);
      assert.ok(!('fault' in parsed), source);
      let stepCount = 0;
      const countingBudget = new (class extends StepBudget {
        override consume(count: number) {
          stepCount += count;
        }
      })(0);
      createPatternMatcher(source)(sampleText, countingBudget);
      return stepCount;
    };
    for (const source of [
      '^(a+)+$',
      '(a|aa)+$',
      '(x+x+)+y',
      '(a?){50}a{50}b',
      '(.*)*b',
      '^(?:[^a]*a){30}$',
      '(a*)*(a*)*$',
    ]) {
      const [short, long] = [countSteps(source, `${'a'.repeat(500)}!`), countSteps(source, `${'a'.repeat(5000)}!`)];
      assert.ok(long < 12 * short + 100_000, `${source}: ${short}, ${long}`);
    }
  });

  describe('in a configuration', () => {
    let oneTool: OneToolFixture;
    before(async () => {
      oneTool = await startOneTool();
    });
    after(() => oneTool.stop());
    const getProblems = (pattern: unknown, more: Json = {}) =>
      findToolProblems(oneTool.toolhost, { method: 'POST', input_schema: { a: { type: 'string', pattern, ...more } } });

    it('[conf 5] are reported as problems with an alternative if they cannot run in linear time', async () => {
      const cases: [string, RegExp][] = [
        ['^(?!x)', /: found "\^\(\?!x\)", which has "\(\?!", a lookaround, .*; match the allowed text instead/],
        ['(?<=x)y', /has "\(\?<=", a lookaround/],
        ['(a)\\1', /has "\\1", a backreference, .*; match the allowed text without it$/],
        ['(?<n>a)\\k<n>', /has "\\k", a backreference/],
        ['(?i:a)', /has "\(\?i:", which sets flags; use \[Aa\] instead of flags$/],
        ['(', /which is not an ECMAScript regular expression$/],
        ['a{2,1}', /is not an ECMAScript regular expression/],
        ['\\p{Nope}', /has "\\p\{Nope\}"; allowed: \\p\{…\} of L, Letter/],
        ['a{9999}', /has \{9999\}; allowed: counts of at most 5000, or maxLength$/],
        [
          '(a{100}){100}',
          /repeats too much: it expands to more than 5000 instructions; use smaller counts, \* or \+, or maxLength$/,
        ],
        ['(){5000}{0}', /is not an ECMAScript regular expression/],
        [`${'('.repeat(60)}a${')'.repeat(60)}`, /has nested groups; allowed: at most 50 levels$/],
      ];
      for (const [pattern, message] of cases) {
        const [problem = '', ...more] = await getProblems(pattern);
        assert.match(problem, /^tools\[0\]\.input_schema\.a\.pattern: /, pattern);
        assert.match(problem, message);
        assert.deepEqual(more, []);
        const schema = { type: 'object', properties: { a: { pattern } } };
        assert.match((await findToolProblems(oneTool.toolhost, { output_schema: schema })).join(), message);
      }
      assert.match((await getProblems('a'.repeat(1001))).join(), /pattern: /);
      assert.match((await getProblems(5)).join(), /pattern: found 5; allowed: a string$/);
      const properties = { type: 'object', patternProperties: { '^x-': {} } };
      assert.match(
        (await findToolProblems(oneTool.toolhost, { method: 'POST', input_schema: properties })).join(),
        /patternProperties: this keyword is not supported; use additionalProperties for the values, and propertyNames with a pattern for the names$/,
      );
    });

    it('[conf 5] are limited to 20,000 characters per schema', async () => {
      const createSchema = (count: number) => ({
        type: 'object',
        properties: {
          a: { anyOf: Array.from({ length: count }, (_, i) => ({ pattern: `${i % 10}${'a'.repeat(799)}` })) },
        },
      });
      const expected =
        'found 20800 characters of patterns; allowed: at most 20000 per schema; write shorter patterns, or let the API check some values';
      for (const field of ['input_schema', 'output_schema']) {
        assert.deepEqual(await findToolProblems(oneTool.toolhost, { method: 'POST', [field]: createSchema(25) }), []);
        const problems = await findToolProblems(oneTool.toolhost, { method: 'POST', [field]: createSchema(26) });
        assert.deepEqual(problems, [`tools[0].${field}: ${expected}`]);
      }
    });

    it('[conf 5] are shown to agents, and reject arguments and results that do not match', async () => {
      const input_schema = { id: { type: 'string', pattern: '^[A-Z]{2}-\\d+$' } };
      const config = buildServerConfig({ tools: [buildToolConfig({ input_schema })] });
      assert.equal((await checkConfiguration(oneTool.toolhost, config)).valid, true);
      const slug = await oneTool.createToolServer({ url: '/v1/:id', input_schema });
      const { body } = await oneTool.toolhost.rpc(slug, 'a-token-0123456789', 'tools/list');
      assert.match(JSON.stringify(body), /"pattern":"\^\[A-Z\]\{2\}-/);
      assert.notEqual((await oneTool.call(slug, { id: 'AB-12' })).isError, true);
      assert.equal(
        await oneTool.captureRefusal(slug, { id: 'ab' }),
        'The arguments are invalid: id: found "ab"; pattern "^[A-Z]{2}-\\\\d+$" is not met',
      );
      oneTool.upstream.on('GET /answer', () => ({ body: { id: 'xy' } }));
      const output_schema = { type: 'object', properties: { id: { type: 'string', pattern: '^x$' } } };
      assert.match(
        getErrorText(await oneTool.call(await oneTool.createToolServer({ url: '/answer', output_schema }))),
        /does not match output_schema/,
      );
      const full = { type: 'object', properties: { id: { type: 'string', pattern: 'y$' } } };
      assert.equal(
        getResultText(await oneTool.call(await oneTool.createToolServer({ url: '/answer', output_schema: full }))),
        '{"id":"xy"}',
      );
    });

    it('[conf 5] run on a thread for a long text, and stop with a message after too many steps', async () => {
      const slug = await oneTool.createToolServer({
        method: 'POST',
        input_schema: { a: { type: 'string', pattern: '[ab]{1,2000}c' } },
      });
      const long = await oneTool.captureRefusal(slug, { a: 'ab'.repeat(200_000) });
      assert.match(long, /takes more than \d+ steps/);
      assert.notEqual((await oneTool.call(slug, { a: `${'ab'.repeat(50)}c` })).isError, true);
    });
  });
});
