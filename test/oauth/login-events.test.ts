import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { next } from '../support/browser/browser.ts';
import { fromNoon } from '../support/from-noon.ts';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import type { OAuthClient } from '../support/oauth/oauth-client.ts';

describe('the events of logins in the audit log', () => {
  let world: LoginWorld;
  before(async () => {
    world = await startLoginWorld({ surroundings: { now: fromNoon() } });
  });
  after(() => world.stop());

  /** A person who agrees, and whose browser then says that the provider refused. Nobody visits the provider. */
  async function refuse(client: OAuthClient, slug: string): Promise<void> {
    const person = world.browser();
    const departure = await person.press(await person.get(client.authorization().url), 'Allow and log in');
    const back = new URL(`${world.issuer(slug)}/callback`);
    const state = next(departure).searchParams.get('state') ?? '';
    back.search = new URLSearchParams({ error: 'access_denied', state }).toString();
    assert.equal(next(await person.get(back)).searchParams.get('error'), 'access_denied');
  }

  async function eventsOf(slug: string): Promise<{ operation: string; detail: string }[]> {
    const { db } = world.toolhost.running.app.runner;
    const rows = db.selectFrom('audit_events').select(['operation', 'detail']).where('actor_id', '=', 'oauth');
    return rows.where('target', '=', slug).execute();
  }

  it('[find A5] are at most 501 a day for the logins that strangers refuse, and no login is lost among them', async () => {
    const slug = await world.serve();
    const client = await world.client(slug);
    for (let n = 0; n < 505; n += 5) await Promise.all(Array.from({ length: 5 }, () => refuse(client, slug)));
    await world.logIn(client);
    const events = await eventsOf(slug);
    const failed = events.filter(({ operation }) => operation === 'loginFailed');
    assert.equal(failed.length, 501);
    assert.deepEqual(
      failed.filter(({ detail }) => detail.includes('further')).map(({ detail }) => detail),
      ['{"further":5}'],
    );
    assert.equal(events.length, 502);
  });
});
