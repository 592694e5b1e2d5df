import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { freshRequest } from '../support/fresh-request.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { scrape } from '../support/toolhost/scrape.ts';
import { toolhostJson } from '../support/toolhost/toolhost-command.ts';
import { type MachineClock, settableClock } from '../support/toolhost/wrong-clock.ts';

const hour = 3_600_000;
const noticedMs = 20_000;

describe('[find B1] SQLite on a machine whose clock was three hours fast and is corrected', () => {
  let folder: string;
  let clock: MachineClock;
  let env: Record<string, string>;
  let child: ChildToolhost;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'toolhost-clock-'));
    clock = settableClock(join(folder, 'ahead'));
    const key = randomBytes(32).toString('base64');
    env = { DATA_DIR: join(folder, 'data'), MASTER_KEY: key, WORKERS: '2', ...clock.env };
    child = await startChildToolhost(env);
  });
  after(async () => {
    await child?.end();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Makes a key that works for an hour. */
  const make = async () => {
    const args = ['keys', 'create', '--name', 'n', '--scopes', 'manage', '--expires', '1h'];
    return (await toolhostJson<{ key: string }>(args, { env })).key;
  };
  /** What the workers answer; each new connection may reach another one. A list would be refused on a busy machine. */
  const statuses = async (key: string) => {
    const found = new Set<number>();
    for (let n = 0; n < 20; n += 1)
      found.add((await freshRequest(`${child.url}/api/v1/workspace/limits`, { key })).status);
    return [...found];
  };
  const logged = (what: RegExp) => child.output().match(what)?.length ?? 0;

  it('has one time in workers, new workers, the command line and a restarted service', async () => {
    const short = await make();
    assert.deepEqual(await statuses(short), [200]);
    clock.set(3 * hour);
    await eventually(async () => assert.deepEqual(await statuses(short), [401]), noticedMs);
    clock.set(0);
    await eventually(() => assert.equal(logged(/the clock of this machine was set back/g), 2), noticedMs);
    const check = async () => {
      assert.deepEqual(await statuses(await make()), [200], 'a key of the command line works in every worker');
      assert.deepEqual(await statuses(short), [401], 'expired once is expired');
      assert.equal((await fetch(`${child.url}/readyz`)).status, 200);
      const skew = (await scrape(child.url)).value('toolhost_clock_skew_seconds');
      assert.ok(skew > 10_600 && skew <= 10_800.1, String(skew));
    };
    await check();

    const worker = /"worker":(\d+),"msg":"a worker serves"/.exec(child.output())?.[1];
    process.kill(Number(worker), 'SIGKILL');
    await eventually(() => assert.equal(logged(/a worker serves/g), 3), noticedMs);
    await check();

    await child.end();
    child = await startChildToolhost(env);
    await check();
    // Each worker says it.
    await eventually(
      () => assert.equal(logged(/the time of the service is (?:2 h|3 h|1\d\d min) ahead of it/g), 2),
      noticedMs,
    );

    clock.set(3 * hour);
    await eventually(() => assert.equal(logged(/agrees with the time of the service again/g), 2), noticedMs);
  });

  it('follows a clock that was a month fast at once, and says so', async () => {
    const skew = async () => (await scrape(child.url)).value('toolhost_clock_skew_seconds');
    // Both workers say that they have seen each of these clocks.
    const [setBack, agrees] = [
      /the time of the service is \d+ (?:s|min|h) ahead of it/g,
      /agrees with the time of the/g,
    ];
    const before = [logged(setBack), logged(agrees)] as const;
    clock.set(0);
    await eventually(() => assert.equal(logged(setBack), before[0] + 2), noticedMs);
    clock.set(30 * 24 * hour);
    await eventually(() => assert.equal(logged(agrees), before[1] + 2), noticedMs);
    assert.deepEqual(await statuses(await make()), [200]);
    clock.set(0);
    await eventually(() => assert.equal(logged(/set back by more than a day, and the service follows/g), 2), noticedMs);
    assert.deepEqual(await statuses(await make()), [200]);
    assert.ok((await skew()) < 1);
  });
});
