import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ToolCall } from '@toolhost/mcp-protocol/mcp';
import { version } from '../version.ts';
import { startTracing } from './tracing.ts';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const call: ToolCall = {
  ...{ name: 'get', args: {}, generation: 'stateless', requestId: 'request', bytesIn: 0, headers: {} },
  ...{ traceparent: undefined, tracestate: undefined, revision: undefined },
  ownOrigin: undefined,
  onDisconnect: () => undefined,
  authorization: { isStale: () => false, refresh: () => assert.fail('authorized again') },
};

describe('OTEL_TRACES_SAMPLER', () => {
  const ratio = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' };
  const parentRatio = { ...ratio, OTEL_TRACES_SAMPLER: 'parentbased_traceidratio' };
  const cases: [string, Record<string, string>, boolean, boolean][] = [
    ['no setting', {}, true, true],
    ['always_on', { OTEL_TRACES_SAMPLER: 'always_on' }, true, true],
    ['always_off', { OTEL_TRACES_SAMPLER: 'always_off' }, false, false],
    ['parentbased_always_off', { OTEL_TRACES_SAMPLER: 'parentbased_always_off' }, false, true],
    ['traceidratio of 0', ratio, false, false],
    ['parentbased_traceidratio of 0', parentRatio, false, true],
    ['an invalid ratio', { ...ratio, OTEL_TRACES_SAMPLER_ARG: 'most' }, true, true],
  ];
  for (const [name, env, samplesOwn, samplesCallers] of cases) {
    const [own, callers] = [samplesOwn, samplesCallers].map((isSampled) => (isSampled ? 'samples' : 'drops'));
    it(`${own} own traces and ${callers} those of callers with ${name}`, async () => {
      const options = { endpoint: 'http://127.0.0.1:9', version, env, onCollector: () => undefined };
      const { traceCall, stop } = startTracing(options);
      const isSampled = (parent: string | undefined) =>
        traceCall('things', { ...call, traceparent: parent })
          .startRequest('GET', 'https://api.example.com')
          .traceparent.endsWith('-01');
      assert.deepEqual([isSampled(undefined), isSampled(traceparent)], [samplesOwn, samplesCallers]);
      await stop();
    });
  }
});
