/** Chooses the documents and operations of a run from its seed. */
import type { Cache } from '../cache.ts';
import type { JsonObject } from '../json.ts';
import type { Random } from '../random.ts';
import { readOperations } from '../reader/operations.ts';
import { drawDirectory } from './directory.ts';
import { readFastapi } from './fastapi.ts';
import { generateDocuments } from './generated-documents.ts';

/** A document that is loaded on demand, because all of them together need too much memory. */
export type Source = { name: string; load(): JsonObject };

export type Chosen = Source & {
  /** Operations to judge, such as `GET /pets`. */
  operations: string[];
};

/**
 * Chooses half of the documents from real descriptions and generates the other half. The operations are spread evenly
 * over each half.
 */
export async function chooseSources(
  cache: Cache,
  random: Random,
  documents: number,
  operations: number,
): Promise<Chosen[]> {
  const realSources = take(drawDirectory(cache.descriptions, random.fork('directory')), Math.floor(documents / 2));
  const fastapi = await readFastapi(cache.folder);
  const generated = generateDocuments(random.fork('generated'));
  const generatedSources = take(generated, Math.ceil(documents / 2) - 1);
  const half = Math.ceil(operations / 2);
  const all = readOperations(fastapi).map(({ key }) => key);
  const maxOperations = Math.ceil(half / 2);
  const fastapiOperations = random.fork('operations of fastapi').shuffle(all).slice(0, maxOperations);
  const fastapiSources: Chosen[] = [{ name: 'fastapi', load: () => fastapi, operations: fastapiOperations }];
  const newStyleSources = [
    ...fastapiSources,
    ...chooseOperations(generatedSources, random.fork('operations of modern'), half - count(fastapiSources)),
  ];
  return [
    ...newStyleSources,
    ...chooseOperations(realSources, random.fork('operations of real'), operations - count(newStyleSources)),
  ];
}

const count = (chosen: readonly Chosen[]) => chosen.reduce((sum, { operations }) => sum + operations.length, 0);

function take<Item>(items: Iterable<Item>, maxItems: number): Item[] {
  const taken: Item[] = [];
  if (maxItems > 0)
    for (const item of items) {
      taken.push(item);
      if (taken.length >= maxItems) break;
    }
  return taken;
}

/** Chooses operations round-robin, one per document and round. */
function chooseOperations(sources: readonly Source[], random: Random, maxOperations: number): Chosen[] {
  const remaining = sources.map((source) => ({
    source,
    keys: random.fork(source.name).shuffle(readOperations(source.load()).map(({ key }) => key)),
  }));
  const chosen = new Map<Source, string[]>(sources.map((source) => [source, []]));
  let taken = 0;
  for (let isMore = true; isMore && taken < maxOperations; ) {
    isMore = false;
    for (const { source, keys } of remaining) {
      const key = taken < maxOperations ? keys.pop() : undefined;
      if (key === undefined) continue;
      chosen.get(source)?.push(key);
      taken++;
      isMore = true;
    }
  }
  return [...chosen]
    .filter(([, operations]) => operations.length > 0)
    .map(([source, operations]) => ({ ...source, operations }));
}
