import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readConfig } from '../apps/server/src/config.ts';
import { runToolhostCommand } from './support/toolhost/toolhost-command.ts';

const noFile = () => {
  throw new Error('this test reads no file');
};

describe('the service configuration', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'toolhost-settings-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const runServe = (env: NodeJS.ProcessEnv) =>
    runToolhostCommand(['serve'], { env: { DATA_DIR: join(folder, 'data'), PORT: '0', ...env } });

  it('reads each secret from a file, also in operator commands', async () => {
    const database = file('database', 'postgres://me:hunter2@127.0.0.1:9/none\n');
    for (const args of [['serve'], ['keys', 'list'], ['backup', join(folder, 'made.backup')]]) {
      const { code, stderr } = await runToolhostCommand(args, { env: { PORT: '0', DATABASE_URL_FILE: database } });
      assert.equal(code, 1, args.join(' '));
      assert.match(stderr, /the database does not (answer|respond): .*ECONNREFUSED/);
      assert.doesNotMatch(stderr, /hunter2/);
    }
    const files: Record<string, string> = { '/run/client': ' from a file\n', '/run/metrics': `${'m'.repeat(32)}\n` };
    const { secrets } = readConfig(
      {
        OIDC_ISSUER: 'https://login.example.com',
        OIDC_CLIENT_ID: 'toolhost',
        OIDC_CLIENT_SECRET_FILE: '/run/client',
        METRICS_TOKEN_FILE: '/run/metrics',
      },
      (path) => files[path] as string,
    );
    assert.equal(secrets.oidc?.clientSecret, 'from a file');
    assert.equal(secrets.metricsToken, 'm'.repeat(32));
  });

  it('names the variable of a secret file that is missing, empty, or redundant', async () => {
    const { code, stderr } = await runServe({
      MASTER_KEY_FILE: join(folder, 'missing'),
      METRICS_TOKEN_FILE: file('empty', '\n'),
      DATABASE_URL: 'postgres://127.0.0.1/a',
      DATABASE_URL_FILE: file('other', 'postgres://127.0.0.1/b'),
    });
    assert.equal(code, 1);
    assert.match(
      stderr,
      /MASTER_KEY_FILE: cannot be read; allowed: the path of a readable file that contains MASTER_KEY/,
    );
    assert.match(stderr, /METRICS_TOKEN_FILE: is empty;/);
    assert.match(stderr, /DATABASE_URL and DATABASE_URL_FILE: set only one of the two/);
  });

  /** Wrong settings, each with the message that says what to do. */
  const wrongSettings: [title: string, env: () => NodeJS.ProcessEnv, message: RegExp][] = [
    ['a port in words', () => ({ PORT: 'abc' }), /PORT: found "abc"; allowed: a whole number from 0 to 65535\. /],
    [
      'a port that does not exist',
      () => ({ PORT: '65536' }),
      /PORT: found "65536"; allowed: a whole number from 0 to /,
    ],
    [
      'a negative limit',
      () => ({ CONCURRENT_CALLS: '-5' }),
      /CONCURRENT_CALLS: found "-5"; allowed: a whole number from 0\. /,
    ],
    [
      'an unknown level',
      () => ({ LOG_LEVEL: 'loud' }),
      /LOG_LEVEL: found "loud"; allowed: fatal, error, warn, .*silent\. /,
    ],
    ['an unknown mode', () => ({ LOCAL_MODE: 'yes' }), /LOCAL_MODE: found "yes"; allowed: container, nothing\. /],
    ['a host of another network', () => ({ HOST: 'foo' }), /HOST: found "foo"; allowed in local mode: 127\.0\.0\.1/],
    [
      'a base URL without a scheme',
      () => ({ BASE_URL: 'xyz' }),
      /BASE_URL: found "xyz"; allowed: the URL that clients use/,
    ],
    [
      'a file as the data folder',
      () => ({ DATA_DIR: file('a-file', 'x') }),
      /a-file is a file; set DATA_DIR or --data-dir to another folder/,
    ],
    [
      'a data folder below a file',
      () => ({ DATA_DIR: join(file('another-file', 'x'), 'data') }),
      /another-file\/data is below a file; set DATA_DIR or --data-dir to another folder/,
    ],
    [
      'a data folder where no one can create one',
      () => ({ DATA_DIR: '/proc/toolhost' }),
      /\/proc\/toolhost cannot be created, .*; set DATA_DIR or --data-dir to another folder/,
    ],
  ];
  for (const [title, getEnv, message] of wrongSettings)
    it(`says what to do about ${title}`, async () => {
      const { code, stdout, stderr } = await runServe(getEnv());
      assert.deepEqual([code, stdout], [1, ''], stderr);
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /\bE[A-Z]{4,}\b|mkdir|^\s+at /m);
    });

  it('accepts a drain delay for load balancers of 0 to 20 s', () => {
    const readDrainDelay = (text: string) => readConfig({ DRAIN_DELAY_SECONDS: text }, noFile).config.drainDelayMs;
    assert.deepEqual(['', '0', '2.5', '20'].map(readDrainDelay), [0, 0, 2500, 20_000]);
    assert.throws(() => readDrainDelay('21'), /DRAIN_DELAY_SECONDS: found "21"; allowed: .* 0 to 20/);
  });
});
