import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../files.ts';
import { type Json, startToolhost, type TestToolhost } from '../toolhost/toolhost.ts';
import {
  type CannedResponse,
  type RecordedRequest,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../upstreams/recording-upstream.ts';

/** Reads a file of `test/import/cases`. */
export function importCase(path: string): string {
  return readFileSync(join(root, 'test', 'import', 'cases', path), 'utf8');
}

export type Imported = {
  names: unknown[];
  config: Json & { tools: Json[] };
  report: { operation: string; tool: string; outcome: string; notes: string[] }[];
  findings: Json[];
  /** Calls a tool and returns the request that it sends. */
  callTool: (tool: string, args?: Json) => Promise<RecordedRequest>;
};

/** A service that imports documents into servers whose tools call a recording upstream. */
export type Imports = {
  upstream: RecordingUpstream;
  toolhost: TestToolhost;
  importDocument: (document: string, choices?: Json) => Promise<Imported>;
  /** Returns the error message for a rejected document. */
  getRejection: (document: string) => Promise<string>;
  /** Plans an import from an upstream path; `responses` are the responses by path. */
  planFrom: (
    path: string,
    responses: Record<string, CannedResponse>,
  ) => Promise<{ status: number; text: string; body: Json }>;
  stop: () => Promise<void>;
};

export async function startImports(): Promise<Imports> {
  const upstream = await startRecordingUpstream();
  const toolhost = await startToolhost({ egressPorts: [upstream.port] });
  const key = await toolhost.createKey({ scopes: ['call'] });
  let count = 0;
  const importDocument: Imports['importDocument'] = async (document, choices = {}) => {
    const slug = `imports-${++count}`;
    const body = { mode: 'create', document, include: ['*'], server: upstream.url, slug, report: 'all', ...choices };
    const reply = await toolhost.rest('POST', '/import', { body });
    assert.equal(reply.status, 200, reply.text.slice(0, 800));
    const { config } = (await toolhost.rest('GET', `/servers/${slug}`)).body as { config: Imported['config'] };
    const { report, findings } = reply.body as Pick<Imported, 'report' | 'findings'>;
    const secrets = reply.body.secrets as { name: string }[];
    for (const { name } of secrets)
      await toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value: 'the-secret' } });
    const callTool = async (tool: string, args: Json = {}) => {
      upstream.take();
      const result = await toolhost.callTool(slug, secrets.length > 0 ? key : 'caller-token', tool, args);
      const [request] = upstream.take();
      return request ?? assert.fail(`${tool}: ${JSON.stringify(result.content)}`);
    };
    return { names: config.tools.map(({ name }) => name), config, report, findings, callTool };
  };
  return {
    upstream,
    toolhost,
    importDocument,
    getRejection: async (document) => {
      const { status, text } = await toolhost.rest('POST', '/import', { body: { document } });
      assert.equal(status, 400, text.slice(0, 300));
      return text;
    },
    planFrom: async (path, responses) => {
      for (const [at, response] of Object.entries(responses)) upstream.on(`GET ${at}`, () => response);
      return toolhost.rest('POST', '/import', { body: { url: upstream.url + path } });
    },
    stop: async () => {
      await toolhost.stop();
      await upstream.close();
    },
  };
}
