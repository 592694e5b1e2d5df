import { z } from 'zod';
import { isSlug } from '../../domain/slug.ts';
import { AppError } from '../../errors.ts';
import type { Input, OperationName, Output } from '../../operations/index.ts';
import type { RestClient } from './rest-client.ts';

export type ListPage<Entry> = { entries: readonly Entry[]; next: string | undefined };

/** Reads one page. Takes the pagination fields of the service's list operations. */
export type ReadPage<Entry> = (wanted: { cursor?: string; limit: number }) => Promise<ListPage<Entry>>;

/** Name of the list in the output of an operation. */
type ListName<Name extends OperationName> = keyof Output<Name> & string;
type EntryOf<List> = List extends readonly (infer Entry)[] ? Entry : never;

/** Returns a function that reads pages of a list operation. */
export function pageReader<Name extends OperationName, List extends ListName<Name>>(
  client: RestClient,
  [name, list]: readonly [operation: Name, list: List],
  input: Input<Name>,
): ReadPage<EntryOf<Output<Name>[List]>> {
  return async (wanted) => {
    const page = await client.run(name, { ...input, ...wanted });
    const { next_cursor: next } = page as { next_cursor?: string };
    return { entries: page[list] as readonly EntryOf<Output<Name>[List]>[], next };
  };
}

/** Entries per page; the maximum of the service's list operations. */
export const mostOfPage = 200;

/** Maximum pages of one list: 400,000 entries. */
const mostPages = 2000;
/** Maximum consecutive empty pages. With a filter that rarely matches, each of them covers 25,000 calls. */
const mostEmptyPages = 100;
/** Maximum length of a cursor; every list operation rejects longer ones. */
const longestCursor = 500;

type Wanted = { most?: number; ofPage?: number };

/**
 * Yields the pages of a list until `most` entries were read or the list ends. A malicious or broken service cannot keep
 * a command reading: a page must not exceed the requested limit, a cursor must not repeat, and the number of pages is
 * limited.
 * @throws AppError tooLarge beyond a limit, invalid for a malformed page
 */
export async function* pagesOf<Entry>(
  read: ReadPage<Entry>,
  { most = Number.POSITIVE_INFINITY, ofPage = mostOfPage }: Wanted = {},
): AsyncGenerator<ListPage<Entry>> {
  const cursors = new Set<string>();
  let [found, empty] = [0, 0];
  let cursor: string | undefined;
  for (let pages = 0; pages < mostPages; pages++) {
    const limit = Math.min(ofPage, most - found);
    const page = await read(cursor === undefined ? { limit } : { cursor, limit });
    const { entries, next } = page;
    if (entries.length > limit)
      throw new AppError('invalid', `the service returned ${entries.length} entries; at most ${limit} were requested`);
    found += entries.length;
    empty = entries.length === 0 ? empty + 1 : 0;
    if (next !== undefined && (next.length > longestCursor || cursors.has(next)))
      throw new AppError(
        'invalid',
        'the service returned a next_cursor twice, or one that is too long, so its list does not end',
      );
    yield page;
    if (next === undefined || found >= most) return;
    if (empty >= mostEmptyPages)
      throw new AppError(
        'tooLarge',
        `the service returned ${empty} empty pages in a row; narrow the request, for example to a later time`,
      );
    cursors.add(next);
    cursor = next;
  }
  throw new AppError('tooLarge', `the list has more than ${mostPages} pages; narrow the request`);
}

/** Reads all entries of a list. @throws AppError as `pagesOf` does */
export async function readList<Entry>(read: ReadPage<Entry>, wanted: Wanted = {}): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const page of pagesOf(read, wanted)) entries.push(...page.entries);
  return entries;
}

export type ListedServer = Output<'listMcpServers'>['servers'][number];

/** Lists all servers that the credential may see. @throws AppError */
export function listedServers(client: RestClient): Promise<ListedServer[]> {
  return readList(pageReader(client, ['listMcpServers', 'servers'], {}));
}

const text = z.string().optional();
const credential = z.looseObject({
  token: text,
  password: text,
  client_secret: text,
  secret_access_key: text,
  session_token: text,
});

const credentials = z.union([credential, z.array(credential)]);

/** Configuration fields that commands use. A service of another version may have further fields. */
const usedFields = z.looseObject({
  slug: z.string().refine(isSlug),
  name: z.string(),
  authentication: credentials.optional(),
  credentials: z.record(z.string(), credentials).optional(),
  oauth: z.looseObject({}).optional(),
  tools: z.array(
    z.looseObject({
      name: z.string(),
      method: z.string(),
      url: z.string(),
      description: z.string().optional(),
      disabled: z.boolean().optional(),
      input_schema: z
        .record(
          z.string(),
          z.unknown().refine((value) => value !== null),
        )
        .optional(),
    }),
  ),
});

export type OneServer = Omit<Output<'getMcpServer'>, 'config'> & { config: z.output<typeof usedFields> };

/**
 * Reads a server with its configuration. Checks that the response has the requested slug, because files are named
 * after it.
 * @throws AppError as `RestClient.run` does, and unavailable for another server or no configuration
 */
export async function oneServer(client: RestClient, slug: string): Promise<OneServer> {
  const answer = await client.run('getMcpServer', { slug });
  const read = usedFields.safeParse(answer.config);
  if (!read.success || read.data.slug !== slug.toLowerCase())
    throw new AppError(
      'unavailable',
      `the service did not return the configuration of the server ${JSON.stringify(slug)}. Check the service URL`,
    );
  // Not the parsed copy, because files keep the order of its fields.
  return { ...answer, config: answer.config as OneServer['config'] };
}
