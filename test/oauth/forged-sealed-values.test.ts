import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { assertOAuthError, post, registerClient } from '../support/oauth/oauth-client.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

const slug = 'passed-through';
const endpoints = {
  authorization_url: 'https://provider.example/authorize',
  token_url: 'https://provider.example/token',
};
const client = { client_id: 'toolhost', client_secret: 'a-secret-of-the-client' };
const oauth = { token_mode: 'passthrough', ...endpoints, ...client };

/** Values in the form of a sealed value, or nearly so, that no key of the service has sealed. */
const forgedValues = [
  ...['v1.deadbeef.AAAA.AAAA', 'v1.cafe0123.AAAA.AAAA', 'v1.{"level":60,"msg":"a forged line"}.AAAA.AAAA'],
  ...[`v1.${'x'.repeat(10_000)}.AAAA.AAAA`, 'v1..AAAA.AAAA', 'v2.deadbeef.AAAA.AAAA', 'deadbeef', ''],
];

describe('forged sealed values', async () => {
  const env = { MASTER_KEY: randomBytes(32).toString('base64'), LOG_LEVEL: 'error' };
  const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-forged-'));
  const toolhost = await startToolhost({ dataDir, env });
  const login = { authentication: { type: 'Bearer' }, oauth };
  await toolhost.createServer(buildServerAt(slug, 'https://api.example', login));
  const stored = { authentication: { type: 'Bearer', token: 'stored' } };
  await toolhost.createServer(buildServerAt('lost-key', 'https://api.example', stored));
  const { db } = toolhost.running.app.runner;
  const { id } = await db.selectFrom('servers').select('id').where('slug', '=', 'lost-key').executeTakeFirstOrThrow();
  const secret = db.selectFrom('secrets').select('sealed_value').where('server_id', '=', id);
  const { sealed_value } = await secret.executeTakeFirstOrThrow();
  const [version, , ...rest] = sealed_value.split('.');
  const brokenValue = [version, '0badc0de', ...rest].join('.');
  await db.updateTable('secrets').set({ sealed_value: brokenValue }).where('server_id', '=', id).execute();
  await toolhost.stop();
  const child = await startChildToolhost({ DATA_DIR: dataDir, ...env });
  after(async () => {
    await child.end();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('[find C2] rejects a forged value without reporting a missing master key, which only a stored value causes', async () => {
    const issuer = `${child.url}/mcp/${slug}`;
    const client = await registerClient({ issuer });
    for (const text of forgedValues) {
      assertOAuthError(await client.refresh(`thp_${text}`), 400, 'invalid_grant');
      const consent = await post(`${issuer}/consent`, new URLSearchParams({ request: text, decision: 'allow' }));
      assert.equal(consent.status, 403, consent.text);
      const cookie = `toolhost-sign-in=${encodeURIComponent(text)}`;
      const signIn = await sendRawRequest(`${child.url}/login/callback?code=x&state=y`, { headers: { cookie } });
      assert.equal(signIn.status, 403, signIn.text);
    }
    for (let times = 0; times < 2; times++) {
      const response = await post(`${child.url}/mcp/lost-key`, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
      assert.equal(response.status, 500, response.text);
    }
    await child.end();
    const lines = child.output('stderr').split('\n');
    const reports = lines.filter((line) => line.includes('master key that this process'));
    const keyIds = reports.map((line) => (JSON.parse(line) as { keyId: string }).keyId);
    assert.deepEqual(keyIds, ['0badc0de']);
  });
});
