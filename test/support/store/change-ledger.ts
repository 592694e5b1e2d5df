import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../eventually.ts';
import { freshRequest, retryUntilServed } from '../fresh-request.ts';
import { readReply } from '../toolhost/read-reply.ts';
import type { Json, Reply } from '../toolhost/toolhost.ts';
import { buildServerAt } from '../upstream-configs.ts';

type Entry = { version: number; secrets: Set<string>; deleted: boolean };

/** Records the changes that a service has acknowledged, and checks that all of them are stored. */
export class ChangeLedger {
  readonly #servers = new Map<string, Entry>();
  readonly #keys = new Map<string, string>();
  /** Number of acknowledged changes so far. */
  acknowledged = 0;

  /** Makes changes through the API, one after the other, until `shouldStop` returns true or the service is gone. */
  async write(url: string, key: string, prefix: string, shouldStop: () => boolean): Promise<void> {
    for (let n = 0; !shouldStop(); n += 1) {
      try {
        await this.#writeOne(url, key, `${prefix}-${n}`, n);
      } catch (error) {
        // The connection was lost, and the response with it: the change was not acknowledged.
        if (!(error instanceof TypeError)) throw error;
      }
    }
  }

  async #writeOne(url: string, key: string, slug: string, index: number): Promise<void> {
    const created = await send(url, key, 'POST', '/servers', buildServerAt(slug, 'https://api.example'));
    if (created.status !== 201) return;
    const entry: Entry = { version: 1, secrets: new Set(), deleted: false };
    this.#servers.set(slug, entry);
    this.acknowledged += 1;
    if ((await send(url, key, 'PATCH', `/servers/${slug}`, { description: `Change of ${slug}` })).status === 200) {
      entry.version = 2;
      this.acknowledged += 1;
    }
    if ((await send(url, key, 'PUT', `/servers/${slug}/secrets/KEY`, { value: slug })).status === 200) {
      entry.secrets.add('KEY');
      this.acknowledged += 1;
    }
    const createdKey = await send(url, key, 'POST', '/keys', { name: slug, scopes: ['manage:read'] });
    if (createdKey.status === 201) {
      this.#keys.set(slug, String(createdKey.body.key));
      this.acknowledged += 1;
    }
    if (index % 3 === 2) {
      // Until the response arrives, the change may or may not be stored.
      this.#servers.delete(slug);
      if ((await send(url, key, 'DELETE', `/servers/${slug}`)).status !== 200) return;
      this.#servers.set(slug, { ...entry, deleted: true });
      this.acknowledged += 1;
    }
  }

  /** Checks that every acknowledged change is stored, and none partially. */
  async check(url: string, key: string): Promise<void> {
    const stored = await listAll(url, key, '/servers', 'servers');
    const servers = new Map(stored.map((server) => [String(server.slug), server]));
    for (const [slug, entry] of this.#servers) {
      const server = servers.get(slug);
      assert.equal(server === undefined, entry.deleted, slug);
      if (!server) continue;
      assert.ok(Number(server.version) >= entry.version, slug);
      const { versions } = (await readJson(url, key, `/servers/${slug}/versions`)) as { versions: Json[] };
      assert.equal(versions.length, server.version, slug);
      const { secrets } = (await readJson(url, key, `/servers/${slug}/secrets`)) as { secrets: Json[] };
      const names = new Set(secrets.map(({ name }) => String(name)));
      assert.ok(entry.secrets.isSubsetOf(names), slug);
    }
    for (const key of this.#keys.values()) await readJson(url, key, '/servers?limit=1');
    const events = await listAll(url, key, '/audit', 'events');
    const creations = events.filter((event) => event.operation === 'createMcpServer');
    const createdSlugs = new Set(creations.map((event) => event.target));
    for (const slug of this.#servers.keys()) assert.ok(createdSlugs.has(slug), slug);
    // A change that was checked once need not be checked again after every later round.
    this.#servers.clear();
    this.#keys.clear();
  }
}

/**
 * Waits for a random moment. In half of the rounds, a change is acknowledged first: on a busy machine, that may take
 * longer than the random delay.
 */
export async function waitForRandomMoment(round: number, ledger: ChangeLedger): Promise<void> {
  const before = ledger.acknowledged;
  if (round % 4 < 2) await eventually(() => assert.ok(ledger.acknowledged > before));
  await delay(randomInt(20, 250));
}

async function send(url: string, key: string, method: string, path: string, body?: Json): Promise<Reply> {
  const headers = { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) };
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
  return readReply(await fetch(`${url}/api/v1${path}`, init));
}

/** Reads stored data through the API and retries while the service is busy. */
async function readJson(url: string, key: string, path: string): Promise<Json> {
  const { status, text, body } = await retryUntilServed(
    () => freshRequest(`${url}/api/v1${path}`, { key }),
    (reply) => reply.status === 429 || reply.status === 503,
  );
  assert.equal(status, 200, `GET ${path}: ${text}`);
  return body;
}

async function listAll(url: string, key: string, path: string, field: string): Promise<Json[]> {
  const rows: Json[] = [];
  for (let cursor = ''; ; ) {
    const body = await readJson(url, key, `${path}?limit=200${cursor && `&cursor=${cursor}`}`);
    rows.push(...(body[field] as Json[]));
    if (body.next_cursor === undefined) return rows;
    cursor = String(body.next_cursor);
  }
}
