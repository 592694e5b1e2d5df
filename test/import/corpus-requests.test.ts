import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type CorpusFile, readCorpus } from '../support/import/corpus.ts';
import { type ExpectedRequest, listExpectedRequests } from '../support/import/expected-request.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const descriptions = [
  'stripe.com',
  'kubernetes.io',
  'slack.com',
  'asana.com',
  'gitlab.com',
  'openai.com',
  'plaid.com',
  'trello.com',
  'vercel.com',
  'box.com',
  'github.com/api.github.com',
  'atlassian.com/jira',
  'spotify.com',
  'zoom.us',
];
const maxPerDescription = 5;

type StoredTool = { name: string; body?: string; input_schema: Json; imported_from?: string };

/** Returns the tool arguments for values by their names on the wire. */
function argumentsFor({ input_schema, body }: StoredTool, { inputs }: ExpectedRequest): Json {
  const definitions = (
    input_schema.type === 'object' && input_schema.properties ? input_schema.properties : input_schema
  ) as Record<string, Json>;
  const findArgumentName = (wireName: string, isBody: boolean) =>
    Object.keys(definitions).find(
      (name) => (definitions[name]?.wire_name ?? name) === wireName && (definitions[name]?.in === 'body') === isBody,
    ) ?? Object.keys(definitions).find((name) => (definitions[name]?.wire_name ?? name) === wireName);
  const args: Json = {};
  for (const [location, values] of Object.entries(inputs)) {
    if (location === 'body' && body !== undefined && body !== 'form') {
      if (Object.keys(values).length > 0) args[body] = values;
      continue;
    }
    for (const [wireName, value] of Object.entries(values))
      args[findArgumentName(wireName, location === 'body') ?? wireName] = value;
  }
  return args;
}

describe('imported tool of a public API', () => {
  let files: CorpusFile[];
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  before(async () => {
    files = await readCorpus();
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egressPorts: [upstream.port] });
  });
  after(async () => {
    await toolhost.stop();
    await upstream.close();
  });

  it('[imp 2] sends the request that an independent reader derives from the description', async () => {
    let compared = 0;
    for (const name of descriptions) {
      const document = files.find((file) => file.name === `${name}.json`)?.text ?? assert.fail(name);
      const all = listExpectedRequests(JSON.parse(document) as Json);
      const step = Math.max(1, Math.floor(all.length / maxPerDescription));
      const expected = all.filter((_, index) => index % step === 0).slice(0, maxPerDescription);
      if (expected.length === 0) continue;
      const slug = `wire-${name.replaceAll(/\W+/g, '-')}`;
      const answers = { credential: 'none' };
      const include = expected.map(({ operation }) => operation);
      const body = { mode: 'create', document, include, answers, server: `${upstream.url}/base`, slug };
      const created = await toolhost.rest('POST', '/import', { body });
      assert.equal(created.status, 200, `${name}: ${created.text.slice(0, 500)}`);
      const { config } = (await toolhost.rest('GET', `/servers/${slug}`)).body as { config: { tools: StoredTool[] } };
      for (const one of expected) {
        const tool =
          config.tools.find(({ imported_from: operation }) => operation === one.operation) ??
          assert.fail(`${name}: ${one.operation}`);
        upstream.take();
        const result = await toolhost.callTool(slug, 'caller-token', tool.name, argumentsFor(tool, one));
        const [sent] = upstream.take();
        assert.ok(sent, `${name} ${one.operation}: ${JSON.stringify(result.content)}`);
        compare(`${name} ${one.operation}`, one, sent);
        compared++;
      }
    }
    assert.ok(compared >= 30, String(compared));
  });

  function compare(what: string, expected: ExpectedRequest, sent: ReturnType<RecordingUpstream['take']>[number]): void {
    const url = new URL(sent.url, 'http://upstream');
    const sorted = (pairs: Iterable<[string, string]>) =>
      [...pairs].map(([name, value]) => `${name}=${value}`).toSorted();
    assert.equal(sent.method, expected.method, what);
    assert.equal(decodeURIComponent(url.pathname), decodeURIComponent(`/base${expected.path}`), what);
    assert.equal(url.pathname.split('/').length, `/base${expected.path}`.split('/').length, what);
    assert.deepEqual(sorted(url.searchParams), sorted(expected.query), what);
    for (const [name, value] of expected.headers) assert.equal(sent.headers[name], value, `${what} ${name}`);
    const text = sent.body.toString();
    if (expected.body?.kind === 'json') assert.deepEqual(JSON.parse(text), expected.body.value, what);
    else if (expected.body?.kind === 'form')
      assert.deepEqual(sorted(new URLSearchParams(text)), sorted(expected.body.pairs), what);
  }
});
