import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import pg from 'pg';
import { getNextUrl, visibleText } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { expectTokens } from '../support/oauth/oauth-client.ts';
import { startPostgres } from '../support/store/postgres.ts';

/** All tables that a login writes to, from the consent to its end, in either token mode. */
const writtenTables = [
  ...['authorizations', 'codes', 'tokens', 'grants', 'changes', 'passthrough_tokens', 'audit_events', 'call_quota_use'],
];

describe('login while a database table cannot be written to', async () => {
  const postgres = await startPostgres();
  const url = await postgres.createDatabase();
  const world = await startLoginWorld({ env: { DATABASE_URL: url } });
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  await admin.query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no space' using errcode = '53100'; end $$`,
  );
  after(async () => {
    await admin.end();
    await world.stop();
    await postgres.stop();
  });

  async function withFailingTable<Result>(table: string, work: () => Promise<Result>): Promise<Result> {
    await admin.query(
      `create trigger full_disk before insert or update on ${table} for each row execute function refuse()`,
    );
    try {
      return await work();
    } finally {
      await admin.query(`drop trigger full_disk on ${table}`);
    }
  }

  /** Returns the login events of a server. */
  async function getLoginEvents(slug: string): Promise<string[]> {
    const result = await admin.query<{ operation: string }>(
      `select operation from audit_events where target = $1 and actor_id = 'oauth' order by at, id`,
      [slug],
    );
    return result.rows.map(({ operation }) => operation);
  }

  async function countGrants(slug: string): Promise<number> {
    return (await admin.query('select id from grants where slug = $1', [slug])).rows.length;
  }

  /** Logs in at the provider. Returns a function that follows the provider's redirect, in the same browser. */
  async function logInAtProvider({ url }: { url: URL }, person = world.newBrowser()) {
    const login = await person.get(getNextUrl(await person.press(await person.get(url), 'Allow and log in')));
    return () => person.get(getNextUrl(login));
  }

  for (const mode of ['issued', 'passthrough']) {
    it(`[find C4] accepts a code again after the database failure, and uses it up only then (${mode})`, async () => {
      const slug = await world.createServer({}, { token_mode: mode });
      for (const table of writtenTables) {
        const client = await world.registerClient(slug);
        const { code, verifier } = await world.logIn(client);
        const during = await withFailingTable(table, () => client.redeem(code, verifier));
        const repeated = during.status === 200 ? during : await client.redeem(code, verifier);
        assert.ok(during.status === 200 || during.status === 503, during.text);
        assert.equal(repeated.status, 200, `${table}: ${repeated.text}`);
        assert.notEqual((await world.callTool(slug, expectTokens(repeated).access_token)).isError, true);
        assert.equal((await client.redeem(code, verifier)).status, 400, 'a code can be used once');
      }
    });
  }

  it('[find C4] stores a login together with its audit event, or neither', async () => {
    for (const table of writtenTables) {
      const slug = await world.createServer();
      const followRedirect = await logInAtProvider((await world.registerClient(slug)).authorization());
      const { status } = await withFailingTable(table, followRedirect);
      const stored = (await countGrants(slug)) === 1;
      // After a 503 the page can be reloaded; the other two tables belong to the events.
      const isRecorded = status !== 503 && table !== 'audit_events' && table !== 'call_quota_use';
      const events = stored ? ['login'] : isRecorded ? ['loginFailed'] : [];
      assert.deepEqual(await getLoginEvents(slug), events, `${table}: ${status}`);
    }
  });

  it('[find C4] reports a temporary error to the client when the login cannot be stored after the provider has responded', async () => {
    const failed: string[] = [];
    for (const table of writtenTables) {
      const { slug, client } = await world.createClient();
      const { url, state } = client.authorization();
      const person = world.newBrowser();
      const followRedirect = await logInAtProvider({ url }, person);
      const during = await withFailingTable(table, followRedirect);
      const page = during.status === 503 ? await followRedirect() : during;
      const { href, searchParams } = getNextUrl(page);
      assert.ok(href.startsWith(client.redirectUri), href);
      assert.deepEqual([searchParams.get('state'), searchParams.get('iss')], [state, world.issuer(slug)]);
      if (searchParams.has('code')) continue;
      failed.push(table);
      assert.equal(searchParams.get('error'), 'temporarily_unavailable');
      assert.match(searchParams.get('error_description') ?? '', /^the login could not be completed: the disk is full/);
      assert.ok((await world.logIn(client, person)).code);
    }
    assert.deepEqual(failed, ['codes', 'grants', 'audit_events', 'call_quota_use']);
  });

  it('[find C4] continues when the person submits the form again after a consent that could not be stored', async () => {
    const client = await world.registerClient(await world.createServer());
    const person = world.newBrowser();
    const form = await person.get(client.authorization().url);
    const during = await withFailingTable('authorizations', () => person.press(form, 'Allow and log in'));
    assert.deepEqual([during.status, during.headers.get('retry-after')], [503, '30']);
    assert.match(visibleText(during), /The disk is full.* Error temporarily_unavailable /);
    assert.equal((await person.press(form, 'Allow and log in')).status, 200);
  });

  it('[find C4] revokes a login together with its audit event, or neither', async () => {
    for (const table of writtenTables) {
      const { slug, client } = await world.createClient();
      const { access_token } = await world.getTokens(client);
      const during = await withFailingTable(table, () => client.revoke(access_token));
      const isEnded = during.status === 200;
      assert.ok(isEnded || during.status === 503, during.text);
      assert.deepEqual(await getLoginEvents(slug), isEnded ? ['login', 'loginRevoked'] : ['login'], table);
      assert.equal((await world.listTools(slug, access_token)).status, isEnded ? 401 : 200, table);
      assert.equal((await client.revoke(access_token)).status, 200);
      assert.deepEqual(await getLoginEvents(slug), ['login', 'loginRevoked'], table);
    }
  });
});
