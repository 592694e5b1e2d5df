import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { startAdversarialService } from '../support/toolhost/adversarial-service.ts';
import { assertFailed, createTestFolder } from '../support/toolhost/command-world.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

/** One command for each HTTP method, and those that send a credential in another form. */
const commands: readonly string[][] = [
  ['servers', 'list'],
  ['servers', 'delete', 'one', '--yes'],
  ['secrets', 'set', 'one', 'NAME'],
  ['tools', 'update', 'one', 'get', '--set', 'timeout_ms=1'],
  ['versions', 'restore', 'one', '3'],
  ['calls', '--since', '1h'],
  ['calls', '--follow'],
  ['export', 'one', '--out', 'exported'],
];

describe('commands that receive a redirect', async () => {
  const [redirecting, redirectTarget] = await Promise.all([startAdversarialService(), startAdversarialService()]);
  const folder = createTestFolder();
  after(() => {
    redirecting.close();
    redirectTarget.close();
  });

  it('[ship 7] do not follow it, and print its target', async () => {
    for (const [index, args] of commands.entries()) {
      const status = [301, 302, 303, 307, 308][index % 5] as number;
      const target = index % 2 === 0 ? `${redirectTarget.url}/api/v1/servers` : '//[evil';
      redirecting.respondWith((request, response) => {
        const isTime = request.url === '/livez';
        response.writeHead(isTime ? 200 : status, isTime ? {} : { location: target });
        response.end('<html>');
      });
      const ended = await runToolhostCommand(args, { env: redirecting.env, cwd: folder, input: 'value' });
      assertFailed(ended, new RegExp(`^error: [^\\n]*responded with ${status}, [^\\n]*\\n$`));
      if (index % 2 === 0) assert.ok(ended.stderr.includes(`It redirects to ${redirectTarget.url}`), ended.stderr);
    }
    assert.deepEqual(redirectTarget.requests, []);
  });

  it('[ship 7] send nothing from a profile to its host over another scheme or port', async () => {
    const home = join(folder, 'person');
    mkdirSync(join(home, 'toolhost'), { recursive: true });
    const { port } = new URL(redirecting.url);
    const stored = `https://127.0.0.1:${port}`;
    const writeProfileFile = (name: string, value: unknown) =>
      writeFileSync(join(home, 'toolhost', name), JSON.stringify(value), { mode: 0o600 });
    writeProfileFile('config.yaml', { profile: 'work', profiles: { work: { url: stored } } });
    writeProfileFile('credentials.json', { profiles: { work: { url: stored, api_key: 'thk_work' } } });
    redirecting.respondWith((_request, response) => void response.end('{}'));
    const env = { XDG_CONFIG_HOME: home };
    const list = (...args: string[]) => runToolhostCommand(['servers', 'list', ...args], { env });
    const otherHost = stored.replace('.1:', '.2:');
    for (const url of [
      redirecting.url,
      `http://localhost:${port}`,
      `${redirecting.url}/`,
      redirectTarget.url,
      otherHost,
    ])
      assertFailed(await list('--url', url), /its credential is not sent elsewhere/);
    // The stored address uses TLS, which this service does not support.
    assertFailed(await list(), /it does not speak TLS|cannot be reached/);
    assert.deepEqual([redirecting.requests, redirectTarget.requests], [[], []]);
  });
});
