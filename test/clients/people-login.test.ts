import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { visibleText } from '../support/browser/browser.ts';
import { type PeopleClient, type PeopleClientKind, peopleClients } from '../support/clients/people-clients.ts';
import { eventually } from '../support/eventually.ts';
import { type LocalPeopleWorld, startLocalPeopleWorld } from '../support/oauth/local-people-world.ts';
import { useFixtures } from '../support/use-fixtures.ts';

type Login = { id: string; person?: string; status: string };

describe('clients that people log in with', () => {
  const fixtures = useFixtures();
  const folder = fixtures.folder('toolhost-people-clients-');
  const world = fixtures.start(startLocalPeopleWorld);
  const checkedWorld = fixtures.start(() => startLocalPeopleWorld({ env: { IDENTITY_CHECK_SECONDS: '5' } }));
  fixtures.start(async () => {
    world.provider.setClaims('otto', { email: 'otto@other.example', email_verified: true });
    for (const { createServer } of [world, checkedWorld])
      await createServer('stored', {
        authentication: { type: 'Bearer', token: 'stored-upstream-key' },
        login: { allow: { domains: ['people.example'] } },
      });
    await world.createServer('own', {
      authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
      login: { allow: { domains: ['people.example'] }, fields: [{ name: 'API_TOKEN', label: 'Personal token' }] },
    });
    return {};
  });

  /** Logs a person in with a client, which knows only the URL of the server. */
  async function connect(kind: PeopleClientKind, slug: string, name: string, at: LocalPeopleWorld = world) {
    const person = at.createPerson(name, { API_TOKEN: `key-of-${name}` });
    let isWilling = true;
    const completeLogin: typeof person.completeLogin = (url) =>
      isWilling ? person.completeLogin(url) : person.cancelLogin(url);
    const url = new URL(`/mcp/${slug}`, at.toolhost.url);
    // The names of this machine lead to the same service.
    if (kind.usesLocalhost) url.hostname = 'localhost';
    const home = mkdtempSync(join(folder, 'home-'));
    const clientDocument = at.documents.publish('/agent');
    const access = { slug, url: url.href, home, clientDocument, completeLogin };
    return {
      person,
      refuse: () => {
        isWilling = false;
      },
      client: kind.connect(access),
    };
  }

  const listLogins = async (slug: string) =>
    (await world.request('GET', `/grants?slug=${slug}`)).body.grants as Login[];

  async function withClients(logins: readonly { client: Promise<PeopleClient> }[], use: () => Promise<void>) {
    try {
      await use();
    } finally {
      for (const { client } of logins) await client.then((connected) => connected.close()).catch(() => undefined);
    }
  }

  for (const [index, kind] of peopleClients.entries()) {
    describe(kind.name, () => {
      it(`logs a person of an allowed domain in with ${kind.name}, and names them on the login and the call`, async () => {
        const login = await connect(kind, 'stored', 'anna');
        await withClients([login], async () => {
          const client = await login.client;
          assert.match(await client.call('who_am_i'), /Bearer stored-upstream-key/);
          const [latest] = await listLogins('stored');
          assert.deepEqual([latest?.person, latest?.status], ['anna@people.example', 'active']);
          const { calls } = (await world.request('GET', `/calls?slug=stored&key_id=${latest?.id}`)).body;
          const [call] = calls as { id: string; caller_kind: string }[];
          assert.equal(call?.caller_kind, 'login');
          const { body } = await world.request('GET', `/calls/${call?.id}`);
          assert.match(String(body.caller_name), /anna@people\.example/);
        });
      });

      it(`tells a person of another domain in ${kind.name} why they are refused`, async () => {
        const login = await connect(kind, 'stored', 'otto');
        await withClients([login], async () => {
          await assert.rejects(login.client);
          const texts = login.person.lastPages.map(visibleText);
          assert.match(texts.join(' '), /You are signed in as otto@other\.example, who may not use this server/i);
        });
      });

      it(`lets each person paste a key with ${kind.name}, and revoking one person ends only their login`, async () => {
        const [anna, bert] = [await connect(kind, 'own', 'anna'), await connect(kind, 'own', 'bert')];
        await withClients([anna, bert], async () => {
          const clients = [await anna.client, await bert.client] as const;
          assert.match(await clients[0].call('who_am_i'), /Bearer key-of-anna/);
          assert.match(await clients[1].call('who_am_i'), /Bearer key-of-bert/);
          const revoked = (await listLogins('own')).find(
            ({ person, status }) => person === 'bert@people.example' && status === 'active',
          );
          assert.equal((await world.request('DELETE', `/grants/${revoked?.id}`)).status, 200);
          bert.refuse();
          world.upstream.take();
          const outcome = await clients[1].call('who_am_i').catch((error: unknown) => String(error));
          assert.doesNotMatch(outcome, /key-of/);
          assert.deepEqual(world.upstream.take(), []);
          assert.match(await clients[0].call('who_am_i'), /Bearer key-of-anna/);
        });
      });

      // Agents start again with every prompt, so they do not keep a connection for the time between two checks.
      if (kind.usesLocalhost) return;

      it(`keeps the login of a person with ${kind.name} through checks at the identity provider, until a check refuses`, async () => {
        const name = `carl${index}`;
        const { provider, upstream } = checkedWorld;
        const login = await connect(kind, 'stored', name, checkedWorld);
        await withClients([login], async () => {
          const client = await login.client;
          const { logins } = provider;
          const count = provider.issued.length;
          await eventually(async () => {
            // A person's agent does not call without a pause, and clients limit how often they renew a token.
            await delay(1000);
            assert.match(await client.call('who_am_i'), /Bearer stored-upstream-key/);
            assert.ok(provider.issued.length > count, 'the person was not checked');
          });
          assert.equal(provider.logins, logins, 'the person had to log in again');
          provider.setClaims(name, { email: `${name}@other.example` });
          await eventually(async () => {
            await delay(1000);
            upstream.take();
            await client.call('who_am_i').catch(() => undefined);
            assert.deepEqual(upstream.take(), []);
          });
        });
      });
    });
  }
});
