import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import pg from 'pg';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import { tokensOf } from '../support/oauth/oauth-client.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';

/** Every table that a redeemed code changes, in either mode. */
const written = ['codes', 'tokens', 'grants', 'changes', 'handed_out_tokens'] as const;

describe('a code that is redeemed while the database takes no more rows of one table', () => {
  let postgres: TestPostgres;
  let world: LoginWorld;
  let admin: pg.Client;
  before(async () => {
    postgres = await startPostgres();
    const url = await postgres.createDatabase();
    world = await startLoginWorld({ env: { DATABASE_URL: url } });
    admin = new pg.Client({ connectionString: url });
    await admin.connect();
    await admin.query(
      `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no space' using errcode = '53100'; end $$`,
    );
  });
  after(async () => {
    await admin.end();
    await world.stop();
    await postgres.stop();
  });

  for (const mode of ['issued', 'passthrough']) {
    it(`[find C4] is good again once the fault is over, and only then spent (${mode})`, async () => {
      const slug = await world.serve({}, { token_mode: mode });
      for (const table of written) {
        const client = await world.client(slug);
        const { code, verifier } = await world.logIn(client);
        await admin.query(
          `create trigger full_disk before insert or update on ${table} for each row execute function refuse()`,
        );
        const during = await client.redeem(code, verifier);
        await admin.query(`drop trigger full_disk on ${table}`);
        const again = during.status === 200 ? during : await client.redeem(code, verifier);
        assert.ok(during.status === 200 || during.status === 503, during.text);
        assert.equal(again.status, 200, `${table}: ${again.text}`);
        assert.notEqual((await world.call(slug, tokensOf(again).access_token)).isError, true);
        assert.equal((await client.redeem(code, verifier)).status, 400, 'a code is good once');
      }
    });
  }
});
