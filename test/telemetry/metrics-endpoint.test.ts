import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { describe, it } from 'node:test';
import { ConfigError, readConfig } from '../../apps/server/src/config.ts';
import { createMetricsEndpoint } from '../../apps/server/src/telemetry/metrics-endpoint.ts';
import { buildProductionEnv } from '../support/toolhost/production-env.ts';
import { parseMetrics } from '../support/toolhost/scrape-metrics.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';
import { useFixture } from '../support/use-fixtures.ts';

const metricsToken = 'metrics-token-0123456789';
const host = 'tools.example.com';

describe('metrics endpoint of a public service', () => {
  const startProduction = async (more: Record<string, string> = {}) => {
    const PORT = String(await findFreePort());
    return startToolhost({ env: buildProductionEnv({ PORT, ...more }) });
  };
  const withoutToken = useFixture(startProduction);
  const withToken = useFixture(() => startProduction({ METRICS_TOKEN: metricsToken }));

  const get = ({ running }: TestToolhost, headers: Record<string, string>, path = 'metrics', method = 'GET') =>
    sendRawRequest(`http://127.0.0.1:${running.config.port}/${path}`, { method, headers: { host, ...headers } });
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  it('returns 404 without METRICS_TOKEN, even to local clients', async () => {
    const unknownPath = await get(withoutToken, {}, 'nothing');
    for (const headers of [{}, bearer(metricsToken), bearer(await withoutToken.createKey())]) {
      const reply = await get(withoutToken, headers);
      assert.equal(reply.status, 404);
      const withoutRequestId = (text: string) => text.replace(/"request_id":"\w+"/, '');
      assert.equal(withoutRequestId(reply.text), withoutRequestId(unknownPath.text));
    }
  });

  it('requires exactly the configured token', async () => {
    const missing = await get(withToken, {});
    assert.deepEqual([missing.status, missing.headers['www-authenticate']], [401, 'Bearer']);
    for (const token of ['wrong', `${metricsToken}0`, metricsToken.slice(0, -1), await withToken.createKey()]) {
      const reply = await get(withToken, bearer(token));
      assert.equal(reply.status, 401, token);
      assert.ok(!reply.text.includes('toolhost_') && !reply.text.includes(metricsToken));
    }
    const reply = await get(withToken, bearer(metricsToken));
    assert.equal(reply.status, 200);
    assert.equal(parseMetrics(reply.text).value('toolhost_build_info', { mode: 'production' }), 1);
    assert.ok(!reply.text.includes(metricsToken));
  });

  it('accepts the host name that a scraper uses, like the health probes', async () => {
    const headers = { host: '10.0.0.7:8080', ...bearer(metricsToken) };
    assert.equal((await get(withToken, headers)).status, 200);
    assert.equal((await get(withToken, headers, 'api/v1/servers')).status, 421);
  });

  it('refuses every web page, including those of this service', async () => {
    const origins = [`https://${host}`, 'https://evil.example'].map((origin) => ({ origin }));
    const sites = ['same-origin', 'cross-site'].map((site) => ({ 'sec-fetch-site': site }));
    for (const page of [...origins, ...sites])
      assert.equal((await get(withToken, { ...bearer(metricsToken), ...page })).status, 403, JSON.stringify(page));
  });

  it('refuses other methods', async () => {
    assert.equal((await get(withToken, bearer(metricsToken), 'metrics', 'POST')).status, 405);
  });
});

describe('metrics endpoint in local mode', () => {
  const toolhost = useFixture(startToolhost);
  const get = (headers: Record<string, string> = {}) => {
    const { port } = new URL(toolhost.url);
    return sendRawRequest(`http://127.0.0.1:${port}/metrics`, { headers: { host: `127.0.0.1:${port}`, ...headers } });
  };

  it('is open to programs on this machine', async () => {
    for (const headers of [{}, { 'sec-fetch-site': 'none' }]) assert.equal((await get(headers)).status, 200);
  });

  it('returns 404 to other machines', async () => {
    // A machine may have no other address to connect from, so this test works without a network.
    const endpoint = createMetricsEndpoint({ isOpenOnLoopback: true, token: undefined, getText: async () => 'text' });
    const requestFrom = (remoteAddress: string | undefined) =>
      endpoint({ headers: {}, socket: { remoteAddress } } as IncomingMessage);
    for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])
      assert.equal(await (await requestFrom(address)).text(), 'text');
    for (const address of ['10.0.0.7', '::ffff:10.0.0.7', 'fe80::1', '::2', '1.127.0.0', undefined])
      await assert.rejects(requestFrom(address), { kind: 'notFound' }, address);
  });

  it('refuses web pages and DNS names that a page has bound to this machine', async () => {
    assert.equal((await get({ origin: toolhost.url })).status, 403);
    assert.equal((await get({ 'sec-fetch-site': 'cross-site' })).status, 403);
    assert.equal((await get({ host: 'evil.example' })).status, 421);
  });
});

describe('METRICS_TOKEN and OTEL_EXPORTER_OTLP_ENDPOINT', () => {
  const getConfigError = (env: Record<string, string>) => {
    try {
      readConfig(env, () => '');
      return '';
    } catch (error) {
      assert.ok(error instanceof ConfigError);
      return error.message;
    }
  };

  it('are refused if they are invalid, without being shown', () => {
    for (const token of ['too-short', 'with space in the middle of it', '==================']) {
      const message = getConfigError({ METRICS_TOKEN: token });
      assert.match(message, /METRICS_TOKEN: is too short .* openssl rand -hex 32/);
      assert.ok(!message.includes(token));
    }
    for (const endpoint of ['collector.secret:4318', 'ftp://me:secret@host/']) {
      const message = getConfigError({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });
      assert.match(message, /OTEL_EXPORTER_OTLP_ENDPOINT: allowed: an http/);
      assert.ok(!message.includes('secret'));
    }
    const valid = { METRICS_TOKEN: metricsToken, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
    assert.equal(getConfigError(valid), '');
  });
});
