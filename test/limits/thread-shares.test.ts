import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { createHangingJob, hangingJobOptions } from '../support/hanging-job.ts';
import { type OneToolFixture, startOneTool } from '../support/one-tool.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';

/** A response of this size is parsed on a thread. */
const longBytes = 450_000;

describe('job threads of a workspace', () => {
  const { NODE_OPTIONS: originalNodeOptions } = process.env;
  let oneTool: OneToolFixture;
  before(async () => {
    process.env.NODE_OPTIONS = `${originalNodeOptions ?? ''} ${hangingJobOptions}`;
    oneTool = await startOneTool({ env: { TRUSTED_PROXIES: '1' } });
  });
  after(async () => {
    if (originalNodeOptions === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = originalNodeOptions;
    await oneTool.stop();
  });

  it('[find A6] stay available to a caller with a key while made-up bearer tokens flood an open server', async () => {
    const { toolhost, upstream } = oneTool;
    const toJsonResponse = (body: string): CannedResponse => ({
      headers: { 'content-type': 'application/json' },
      body,
    });
    const [first, others] = [createHangingJob(), createHangingJob()];
    upstream.on('GET /first', () => toJsonResponse(first.body(longBytes)));
    upstream.on('GET /others', () => toJsonResponse(others.body(longBytes)));
    upstream.on('GET /mine', () => toJsonResponse(JSON.stringify({ rest: 'x'.repeat(longBytes) })));
    const fields = { response_fields: ['rest'] };
    const [openFirst, openOthers] = [
      await oneTool.createToolServer({ url: '/first', ...fields }),
      await oneTool.createToolServer({ url: '/others', ...fields }),
    ];
    const stored = { authentication: { type: 'Bearer', token: 'x' } };
    const mySlug = await oneTool.createToolServer({ url: '/mine', ...fields }, stored);
    const key = await toolhost.createKey();
    const callFrom = (slug: string, token: string) => {
      const headers = { 'x-forwarded-for': '203.0.113.1' };
      return toolhost.rpc(slug, token, 'tools/call', { name: 'run', arguments: {} }, headers).catch(() => undefined);
    };
    const getCounts = () => toolhost.running.app.threads.getCounts();
    try {
      const flood = [callFrom(openFirst, 'made-up-1')];
      await first.waitUntilHanging();
      for (let n = 0; n < 7; n++) flood.push(callFrom(openOthers, `made-up-${n % 2}`));
      await eventually(() => assert.equal(getCounts().running + getCounts().waiting, 8));
      const { done } = getCounts().outcomes;
      const call = toolhost.callTool(mySlug, key, 'run');
      // The call is queued with the others, or already has its thread.
      await eventually(() =>
        assert.equal(
          getCounts().running + getCounts().waiting + getCounts().outcomes.done - done,
          9,
          JSON.stringify(getCounts()),
        ),
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
    const { toolhost, upstream } = oneTool;
    const description = {
      openapi: '3.0.0',
      info: { title: 'Files', version: '1' },
      paths: { '/a': { get: { operationId: 'a', responses: { 200: { $ref: 'answer.json' } } } } },
    };
    const bundlingJobs = [createHangingJob(), createHangingJob()];
    for (const [index, job] of bundlingJobs.entries())
      upstream.on(`GET /${index}.json`, () => ({
        body: JSON.stringify({ ...(JSON.parse(job.body()) as object), ...description }),
      }));
    upstream.on('GET /answer.json', () => ({ body: '{"description":"Good."}' }));
    upstream.on('GET /long', () => ({
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ rest: 'x'.repeat(longBytes) }),
    }));
    const key = await toolhost.createKey();
    const slug = await oneTool.createToolServer({ url: '/long', response_fields: ['rest'] });
    const getCounts = () => toolhost.running.app.threads.getCounts();
    const startPlan = async (index: number) => {
      const body = { mode: 'plan', url: `${upstream.url}/${index}.json` };
      return toolhost.rest('POST', '/import', {
        body,
        key: await toolhost.createKey({ workspace: `importing-${index}` }),
      });
    };
    const { done } = getCounts().outcomes;
    const plans = [startPlan(0)];
    try {
      await bundlingJobs[0]?.waitUntilHanging();
      plans.push(startPlan(1));
      await eventually(() => assert.equal(getCounts().running + getCounts().waiting, 2));
      const result = await toolhost.callTool(slug, key, 'run');
      assert.notEqual(result.isError, true, JSON.stringify(result.content[0]).slice(0, 500));
      assert.deepEqual([getCounts().running, getCounts().waiting, getCounts().outcomes.done - done], [1, 1, 1]);
    } finally {
      for (const job of bundlingJobs) await job.release();
    }
    for (const { status, text } of await Promise.all(plans)) assert.equal(status, 200, text);
  });
});
