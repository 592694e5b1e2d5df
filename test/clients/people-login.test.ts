import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { visibleText } from '../support/browser/browser.ts';
import { type PeopleClient, type PeopleClientKind, peopleClients } from '../support/clients/people-clients.ts';
import { startLocalPeopleWorld } from '../support/oauth/local-people-world.ts';
import { useFixtures } from '../support/use-fixtures.ts';

type Login = { id: string; person?: string; status: string };

describe('clients that people log in with', () => {
  const fixtures = useFixtures();
  const folder = fixtures.folder('toolhost-people-clients-');
  const world = fixtures.start(startLocalPeopleWorld);
  fixtures.start(async () => {
    world.provider.setClaims('otto', { email: 'otto@other.example', email_verified: true });
    await world.createServer('stored', {
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
  async function connect(kind: PeopleClientKind, slug: string, name: string) {
    const person = world.createPerson(name, { API_TOKEN: `key-of-${name}` });
    let isWilling = true;
    const completeLogin: typeof person.completeLogin = (url) =>
      isWilling ? person.completeLogin(url) : person.cancelLogin(url);
    const url = new URL(`/mcp/${slug}`, world.toolhost.url);
    // The names of this machine lead to the same service.
    if (kind.usesLocalhost) url.hostname = 'localhost';
    const home = mkdtempSync(join(folder, 'home-'));
    const clientDocument = world.documents.publish('/agent');
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

  for (const kind of peopleClients) {
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
    });
  }
});
