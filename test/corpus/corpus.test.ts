import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import {
  type RecordedRequest,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../support/upstreams/recording-upstream.ts';

/**
 * Configuration of a real API, written after its documentation, and the exact request of each call. `request` lists
 * only headers that are not in every request. A value that begins with `~` is a regular expression.
 */
type Corpus = {
  api: string;
  documentation: string;
  secrets: Record<string, string>;
  /** Responses of the upstream by method and path, for example of a token endpoint. */
  answers?: Record<string, unknown>;
  config: { slug: string; base_url?: string; authentication?: Json; tools: (Json & { name: string; url: string })[] };
  calls: { tool: string; arguments: Json; request: WrittenRequest }[];
};

type WrittenRequest = { method: string; url: string; headers: Record<string, string>; body?: string; base64?: string };

const folder = import.meta.dirname;
const corpora = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Corpus);

/** Headers of every request, whatever the tool configures. */
const usual = new Set(['host', 'connection', 'content-length', 'user-agent', 'toolhost-hop']);

function written({ method, url, headers, body }: RecordedRequest): WrittenRequest {
  const boundary = /boundary=(\S+)/.exec(headers['content-type'] ?? '')?.[1];
  const named = (text: string) => (boundary === undefined ? text : text.replaceAll(boundary, 'BOUNDARY'));
  const kept = Object.entries(headers).filter(([name]) => !usual.has(name));
  return {
    method,
    url,
    headers: Object.fromEntries(kept.map(([name, value]) => [name, named(String(value))])),
    ...(body.length === 0 ? {} : isUtf8(body) ? { body: named(body.toString()) } : { base64: bytesOf(body, boundary) }),
  };
}

/** Returns the bytes as Base64. A fixed boundary of the same length makes runs comparable. */
function bytesOf(body: Buffer, boundary: string | undefined): string {
  const text = body.toString('latin1');
  return Buffer.from(boundary === undefined ? text : text.replaceAll(boundary, 'BOUNDARY'), 'latin1').toString(
    'base64',
  );
}

/** Returns the expected request with actual values in place of the patterns that they match. */
function withFound(expected: WrittenRequest, found: WrittenRequest): WrittenRequest {
  const headers = Object.entries(expected.headers).map(([name, value]) => {
    const isFound = value.startsWith('~') && new RegExp(`^${value.slice(1)}$`).test(found.headers[name] ?? '');
    return [name, isFound ? found.headers[name] : value];
  });
  return { ...expected, headers: Object.fromEntries(headers) };
}

describe('configuration of a real API', () => {
  let toolhost: TestToolhost;
  let upstream: RecordingUpstream;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egress: [upstream.port] });
  });
  after(async () => {
    await toolhost.stop();
    await upstream.close();
  });

  /** Returns the configuration with the address of the upstream in place of each host. */
  const here = ({ config }: Corpus): Json => {
    const moved = (url: string) => url.replace(/^https:\/\/[^/]+/, upstream.url);
    const { base_url, authentication, tools } = config;
    const tokenUrl = authentication?.token_url;
    return {
      ...config,
      ...(base_url !== undefined && { base_url: moved(base_url) }),
      ...(typeof tokenUrl === 'string' && { authentication: { ...authentication, token_url: moved(tokenUrl) } }),
      tools: tools.map((tool) => ({ ...tool, url: moved(tool.url) })),
    };
  };

  for (const corpus of corpora) {
    it(`[conf 1] [conf 2] sends the documented requests of ${corpus.api}`, async () => {
      const { slug } = corpus.config;
      await toolhost.createServer(here(corpus));
      for (const [name, value] of Object.entries(corpus.secrets)) {
        const { status } = await toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
        assert.equal(status, 200);
      }
      for (const [route, body] of Object.entries(corpus.answers ?? {})) upstream.on(route, () => ({ body }));
      const key = await toolhost.key({ scopes: ['call'] });
      for (const call of corpus.calls) {
        upstream.take();
        const result = await toolhost.callTool(slug, key, call.tool, call.arguments);
        assert.notEqual(result.isError, true, `${call.tool}: ${result.content[0]?.text}`);
        const request = upstream.take().at(-1) ?? assert.fail('nothing was sent');
        const found = written(request);
        assert.deepEqual(found, withFound(call.request, found), call.tool);
      }
    });
  }
});
