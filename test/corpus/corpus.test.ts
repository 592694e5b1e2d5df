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
type ApiCase = {
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
const apiCases = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as ApiCase);

/** Headers of every request, whatever the tool configures. */
const commonHeaders = new Set(['host', 'connection', 'content-length', 'user-agent', 'toolhost-hop']);

function toWrittenRequest({ method, url, headers, body }: RecordedRequest): WrittenRequest {
  const boundary = /boundary=(\S+)/.exec(headers['content-type'] ?? '')?.[1];
  const maskBoundary = (text: string) => (boundary === undefined ? text : text.replaceAll(boundary, 'BOUNDARY'));
  const specificHeaders = Object.entries(headers).filter(([name]) => !commonHeaders.has(name));
  return {
    method,
    url,
    headers: Object.fromEntries(specificHeaders.map(([name, value]) => [name, maskBoundary(String(value))])),
    ...(body.length === 0
      ? {}
      : isUtf8(body)
        ? { body: maskBoundary(body.toString()) }
        : { base64: toBase64(body, boundary) }),
  };
}

/** Returns the bytes as Base64. A fixed boundary of the same length makes runs comparable. */
function toBase64(body: Buffer, boundary: string | undefined): string {
  const text = body.toString('latin1');
  return Buffer.from(boundary === undefined ? text : text.replaceAll(boundary, 'BOUNDARY'), 'latin1').toString(
    'base64',
  );
}

/** Returns the expected request with actual values in place of the patterns that they match. */
function withActualValues(expected: WrittenRequest, actual: WrittenRequest): WrittenRequest {
  const headers = Object.entries(expected.headers).map(([name, value]) => {
    const isMatch = value.startsWith('~') && new RegExp(`^${value.slice(1)}$`).test(actual.headers[name] ?? '');
    return [name, isMatch ? actual.headers[name] : value];
  });
  return { ...expected, headers: Object.fromEntries(headers) };
}

describe('configuration of a real API', () => {
  let toolhost: TestToolhost;
  let upstream: RecordingUpstream;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egressPorts: [upstream.port] });
  });
  after(async () => {
    await toolhost.stop();
    await upstream.close();
  });

  /** Returns the configuration with the address of the upstream in place of each host. */
  const withUpstreamOrigins = ({ config }: ApiCase): Json => {
    const replaceOrigin = (url: string) => url.replace(/^https:\/\/[^/]+/, upstream.url);
    const { base_url, authentication, tools } = config;
    const tokenUrl = authentication?.token_url;
    return {
      ...config,
      ...(base_url !== undefined && { base_url: replaceOrigin(base_url) }),
      ...(typeof tokenUrl === 'string' && {
        authentication: { ...authentication, token_url: replaceOrigin(tokenUrl) },
      }),
      tools: tools.map((tool) => ({ ...tool, url: replaceOrigin(tool.url) })),
    };
  };

  for (const corpus of apiCases) {
    it(`[conf 1] [conf 2] sends the documented requests of ${corpus.api}`, async () => {
      const { slug } = corpus.config;
      await toolhost.createServer(withUpstreamOrigins(corpus));
      for (const [name, value] of Object.entries(corpus.secrets)) {
        const { status } = await toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
        assert.equal(status, 200);
      }
      for (const [route, body] of Object.entries(corpus.answers ?? {})) upstream.on(route, () => ({ body }));
      const key = await toolhost.createKey({ scopes: ['call'] });
      for (const call of corpus.calls) {
        upstream.take();
        const result = await toolhost.callTool(slug, key, call.tool, call.arguments);
        assert.notEqual(result.isError, true, `${call.tool}: ${result.content[0]?.text}`);
        const request = upstream.take().at(-1) ?? assert.fail('nothing was sent');
        const actual = toWrittenRequest(request);
        assert.deepEqual(actual, withActualValues(call.request, actual), call.tool);
      }
    });
  }
});
