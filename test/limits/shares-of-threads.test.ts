import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { hangingJob, hangingJobs } from '../support/hanging-job.ts';
import { type OneTool, startOneTool } from '../support/one-tool.ts';
import type { Answer } from '../support/upstreams/recording-upstream.ts';

/** A response of this size is parsed on a thread. */
const longBytes = 450_000;

describe('job threads of a workspace', () => {
  const { NODE_OPTIONS: usual } = process.env;
  let one: OneTool;
  before(async () => {
    process.env.NODE_OPTIONS = `${usual ?? ''} ${hangingJobs}`;
    one = await startOneTool({ env: { TRUSTED_PROXIES: '1' } });
  });
  after(async () => {
    if (usual === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = usual;
    await one.stop();
  });

  it('[find A6] stay available to a caller with a key while made-up bearer tokens flood an open server', async () => {
    const { toolhost, upstream } = one;
    const json = (body: string): Answer => ({ headers: { 'content-type': 'application/json' }, body });
    const [first, others] = [hangingJob(), hangingJob()];
    upstream.on('GET /first', () => json(first.body(longBytes)));
    upstream.on('GET /others', () => json(others.body(longBytes)));
    upstream.on('GET /mine', () => json(JSON.stringify({ rest: 'x'.repeat(longBytes) })));
    const fields = { response_fields: ['rest'] };
    const [openFirst, openOthers] = [
      await one.serve({ url: '/first', ...fields }),
      await one.serve({ url: '/others', ...fields }),
    ];
    const stored = { authentication: { type: 'Bearer', token: 'x' } };
    const mine = await one.serve({ url: '/mine', ...fields }, stored);
    const key = await toolhost.key();
    const from = (slug: string, token: string) => {
      const headers = { 'x-forwarded-for': '203.0.113.1' };
      return toolhost.rpc(slug, token, 'tools/call', { name: 'run', arguments: {} }, headers).catch(() => undefined);
    };
    const counts = () => toolhost.running.app.threads.counts();
    try {
      const flood = [from(openFirst, 'made-up-1')];
      await first.begun();
      for (let n = 0; n < 7; n++) flood.push(from(openOthers, `made-up-${n % 2}`));
      await eventually(() => assert.equal(counts().running + counts().waiting, 8));
      const { done } = counts().outcomes;
      const call = toolhost.callTool(mine, key, 'run');
      // The call is queued with the others, or already has its thread.
      await eventually(() =>
        assert.equal(counts().running + counts().waiting + counts().outcomes.done - done, 9, JSON.stringify(counts())),
      );
      await first.release();
      const result = await call;
      assert.notEqual(result.isError, true, JSON.stringify(result.content[0]).slice(0, 500));
      await others.release();
      await Promise.all(flood);
    } finally {
      for (const job of [first, others]) await job.release().catch(() => undefined);
    }
  });

  it('[find A2] stay available to calls of other workspaces during imports of several files', async () => {
    const { toolhost, upstream } = one;
    const description = {
      openapi: '3.0.0',
      info: { title: 'Files', version: '1' },
      paths: { '/a': { get: { operationId: 'a', responses: { 200: { $ref: 'answer.json' } } } } },
    };
    const bundling = [hangingJob(), hangingJob()];
    for (const [index, job] of bundling.entries())
      upstream.on(`GET /${index}.json`, () => ({
        body: JSON.stringify({ ...(JSON.parse(job.body()) as object), ...description }),
      }));
    upstream.on('GET /answer.json', () => ({ body: '{"description":"Good."}' }));
    upstream.on('GET /long', () => ({
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ rest: 'x'.repeat(longBytes) }),
    }));
    const key = await toolhost.key();
    const slug = await one.serve({ url: '/long', response_fields: ['rest'] });
    const counts = () => toolhost.running.app.threads.counts();
    const plan = async (index: number) => {
      const body = { mode: 'plan', url: `${upstream.url}/${index}.json` };
      return toolhost.rest('POST', '/import', { body, key: await toolhost.key({ workspace: `importing-${index}` }) });
    };
    const { done } = counts().outcomes;
    const plans = [plan(0)];
    try {
      await bundling[0]?.begun();
      plans.push(plan(1));
      await eventually(() => assert.equal(counts().running + counts().waiting, 2));
      const result = await toolhost.callTool(slug, key, 'run');
      assert.notEqual(result.isError, true, JSON.stringify(result.content[0]).slice(0, 500));
      assert.deepEqual([counts().running, counts().waiting, counts().outcomes.done - done], [1, 1, 1]);
    } finally {
      for (const job of bundling) await job.release();
    }
    for (const { status, text } of await Promise.all(plans)) assert.equal(status, 200, text);
  });
});
