import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import jsonSchema2020 from '../conformance/json-schema-2020-12.json' with { type: 'json' };
import { root } from '../files.ts';
import { isFullSuite } from '../sets.ts';
import { formatTranscript, runScript } from '../support/toolhost/run-script.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { startAuthorizingProxy } from '../support/upstreams/authorizing-proxy.ts';
import { startContentUpstream } from '../support/upstreams/content-upstream.ts';

const suiteScript = join(root, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const baselines = join(root, 'test/conformance');

/** Expected number of passed checks per protocol version, because a scenario without checks does not fail the run. */
const passedCheckCounts = [
  ['2026-07-28', 109],
  ['2025-11-25', 48],
  ['2025-06-18', 35],
] as const;

/** Creates a server with the tools that the suite calls by name. */
function createServerConfig(upstream: string, slug: string, mode: object = {}) {
  const tool = (name: string, path: string, overrides: object = {}) => ({
    name,
    description: `The conformance suite calls it: ${path}`,
    method: 'GET',
    url: upstream + path,
    pinned: true,
    ...overrides,
  });
  return {
    name: 'Conformance',
    slug,
    ...mode,
    tools: [
      tool('test_simple_text', '/text'),
      tool('test_image_content', '/image'),
      tool('test_audio_content', '/audio'),
      tool('test_embedded_resource', '/resource'),
      tool('test_multiple_content_types', '/mixed'),
      tool('test_error_handling', '/error'),
      tool('json_schema_2020_12_tool', '/text', { method: 'POST', input_schema: jsonSchema2020 }),
      tool('test_x_mcp_header', '/text', { input_schema: { region: { type: 'string', 'x-mcp-header': 'Region' } } }),
    ],
  };
}

describe('the official MCP conformance suite with the baseline of a tools-only server', {
  concurrency: 2,
}, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'toolhost-conformance-'));
  const [upstream, proxy] = await Promise.all([startContentUpstream(), startAuthorizingProxy()]);
  const toolhost = await startToolhost({ egressPorts: [upstream.port], env: { ALLOWED_ORIGINS: proxy.url } });
  proxy.setDestination(toolhost.url, await toolhost.createKey({ scopes: ['call'] }));
  await toolhost.createServer(createServerConfig(upstream.url, 'conformance'));
  await toolhost.createServer(createServerConfig(upstream.url, 'conformance-search', { tool_mode: 'search' }));
  const config = createServerConfig(upstream.url, 'conformance-view');
  const others = config.tools.map((tool) => ({ ...tool, name: `other_${tool.name}` }));
  const views = { suite: { tools: config.tools.map(({ name }) => name) } };
  await toolhost.createServer({ ...config, tools: [...config.tools, ...others], views });
  after(async () => {
    await proxy.close();
    await Promise.all([toolhost.stop(), upstream.close()]);
    rmSync(directory, { recursive: true, force: true });
  });

  const run = async (slug: string, version: string, passed: number) => {
    const baseline = join(baselines, `conformance-baseline-${version}.yml`);
    const selection = ['--suite', 'all', '--spec-version', version, '--expected-failures', baseline];
    const output = join(directory, slug, version);
    const args = ['server', '--url', `${proxy.url}/mcp/${slug}`, ...selection, '-o', output];
    const result = await runScript(suiteScript, args, directory);
    assert.equal(result.code, 0, formatTranscript(result));
    assert.match(result.stdout, new RegExp(`^Total: ${passed} passed,`, 'm'), formatTranscript(result));
  };

  for (const [version, passed] of isFullSuite ? passedCheckCounts : passedCheckCounts.slice(0, 1))
    it(`passes for version ${version} [mcp 58]`, () => run('conformance', version, passed));

  for (const [version, passed] of isFullSuite ? passedCheckCounts : []) {
    it(`passes for version ${version} at a view [agent 2]`, () => run('conformance-view/suite', version, passed));
    it(`passes for version ${version} in search mode [agent 1]`, () => run('conformance-search', version, passed));
  }
});
