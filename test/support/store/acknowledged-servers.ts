import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { buildServerAt } from '../upstream-configs.ts';

/** Records the servers whose creation a service has acknowledged, and checks that SQLite finds them. */
export class AcknowledgedServers {
  readonly #slugs = new Set<string>();

  get count(): number {
    return this.#slugs.size;
  }

  /** Creates servers, one after the other, until the service is gone. */
  async create(url: string, key: string, prefix: string): Promise<void> {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    for (let n = 0; ; n++) {
      const slug = `${prefix}-${n}`;
      const body = JSON.stringify(buildServerAt(slug, 'https://api.example'));
      try {
        const { status } = await fetch(`${url}/api/v1/servers`, { method: 'POST', headers, body });
        if (status === 201) this.#slugs.add(slug);
      } catch (error) {
        // The connection was lost, and the response with it.
        if (error instanceof TypeError) return;
        throw error;
      }
    }
  }

  /** Returns the acknowledged servers that SQLite itself does not find in a copy of the database files. */
  findMissing(dataDir: string): string[] {
    const folder = mkdtempSync(join(tmpdir(), 'toolhost-judged-'));
    try {
      for (const name of ['toolhost.sqlite', 'toolhost.sqlite-wal'])
        if (existsSync(join(dataDir, name))) copyFileSync(join(dataDir, name), join(folder, name));
      const storedSlugs = readSlugs(join(folder, 'toolhost.sqlite'));
      return [...this.#slugs].filter((slug) => !storedSlugs.has(slug));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  /** Forgets the servers that a permitted loss removed. */
  forget(slugs: readonly string[]): void {
    for (const slug of slugs) this.#slugs.delete(slug);
  }
}

function readSlugs(file: string): Set<unknown> {
  const database = new DatabaseSync(file);
  try {
    const hasServers = database.prepare("select 1 from sqlite_schema where name = 'servers'").get();
    const rows = hasServers ? database.prepare('select slug from servers').all() : [];
    return new Set(rows.map(({ slug }) => slug));
  } finally {
    database.close();
  }
}
