import { AppError } from '@toolhost/errors/errors';
import type { Input, OperationName, Output } from '@toolhost/server/operations';
import { isSlug } from '@toolhost/tool-config/slug';
import { z } from 'zod';
import type { RestClient } from './rest-client.ts';

export type ListPage<Entry> = { entries: readonly Entry[]; nextCursor: string | undefined };

/** Reads one page. Takes the pagination fields of the service's list operations. */
export type ReadPage<Entry> = (request: { cursor?: string; limit: number }) => Promise<ListPage<Entry>>;

type ListName<Name extends OperationName> = keyof Output<Name> & string;
type EntryType<List> = List extends readonly (infer Entry)[] ? Entry : never;

/** Returns a function that reads pages of a list operation. */
export function createPageReader<Name extends OperationName, List extends ListName<Name>>(
  client: RestClient,
  [name, list]: readonly [operation: Name, list: List],
  input: Input<Name>,
): ReadPage<EntryType<Output<Name>[List]>> {
  return async (request) => {
    const page = await client.run(name, { ...input, ...request });
    const { next_cursor: nextCursor } = page as { next_cursor?: string };
    return { entries: page[list] as readonly EntryType<Output<Name>[List]>[], nextCursor };
  };
}

/** Entries per page; the maximum of the service's list operations. */
export const maxPageSize = 200;

/** Maximum pages of one list: 400,000 entries. */
const maxPages = 2000;
/** Maximum consecutive empty pages. The service ends a page after 25,000 calls, even if the filter matched none. */
const maxEmptyPages = 100;
/** Maximum length of a cursor; every list operation rejects longer ones. */
const maxCursorLength = 500;

type ListOptions = { maxEntries?: number; pageSize?: number };

/**
 * Yields the pages of a list until `maxEntries` entries were read or the list ends. A malicious or broken service cannot
 * make a command read forever: a page must not exceed the requested limit, a cursor must not repeat, and the number of
 * pages is limited.
 * @throws AppError tooLarge beyond a limit, invalid for a malformed page
 */
export async function* readPages<Entry>(
  read: ReadPage<Entry>,
  { maxEntries = Number.POSITIVE_INFINITY, pageSize = maxPageSize }: ListOptions = {},
): AsyncGenerator<ListPage<Entry>> {
  const cursors = new Set<string>();
  let [readCount, emptyCount] = [0, 0];
  let cursor: string | undefined;
  for (let pages = 0; pages < maxPages; pages++) {
    const limit = Math.min(pageSize, maxEntries - readCount);
    const page = await read(cursor === undefined ? { limit } : { cursor, limit });
    const { entries, nextCursor } = page;
    if (entries.length > limit)
      throw new AppError('invalid', `the service returned ${entries.length} entries; at most ${limit} were requested`);
    readCount += entries.length;
    emptyCount = entries.length === 0 ? emptyCount + 1 : 0;
    if (nextCursor !== undefined && (nextCursor.length > maxCursorLength || cursors.has(nextCursor)))
      throw new AppError(
        'invalid',
        'the service returned a next_cursor twice, or one that is too long, so its list does not end',
      );
    yield page;
    if (nextCursor === undefined || readCount >= maxEntries) return;
    if (emptyCount >= maxEmptyPages)
      throw new AppError(
        'tooLarge',
        `the service returned ${emptyCount} empty pages in a row; narrow the request, for example to a later time`,
      );
    cursors.add(nextCursor);
    cursor = nextCursor;
  }
  throw new AppError('tooLarge', `the list has more than ${maxPages} pages; narrow the request`);
}

/** Reads all entries of a list. @throws AppError as `readPages` does */
export async function readList<Entry>(read: ReadPage<Entry>, options: ListOptions = {}): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const page of readPages(read, options)) entries.push(...page.entries);
  return entries;
}

export type ListedServer = Output<'listMcpServers'>['servers'][number];

/** Lists all servers that the credential may see. @throws AppError */
export function readServerList(client: RestClient): Promise<ListedServer[]> {
  return readList(createPageReader(client, ['listMcpServers', 'servers'], {}));
}

const optionalString = z.string().optional();
const credentialSchema = z.looseObject({
  token: optionalString,
  password: optionalString,
  client_secret: optionalString,
  secret_access_key: optionalString,
  session_token: optionalString,
});

const credentialsSchema = z.union([credentialSchema, z.array(credentialSchema)]);

/** Configuration fields that commands use. A service of another version may have further fields. */
const configFields = z.looseObject({
  slug: z.string().refine(isSlug),
  name: z.string(),
  authentication: credentialsSchema.optional(),
  credentials: z.record(z.string(), credentialsSchema).optional(),
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

export type ServerWithConfig = Omit<Output<'getMcpServer'>, 'config'> & { config: z.output<typeof configFields> };

/**
 * Reads a server with its configuration. Checks that the response has the requested slug, because files are named
 * after it.
 * @throws AppError as `RestClient.run` does, and unavailable for another server or no configuration
 */
export async function readServerWithConfig(client: RestClient, slug: string): Promise<ServerWithConfig> {
  const result = await client.run('getMcpServer', { slug });
  const parsed = configFields.safeParse(result.config);
  if (!parsed.success || parsed.data.slug !== slug.toLowerCase())
    throw new AppError(
      'unavailable',
      `the service did not return the configuration of the server ${JSON.stringify(slug)}. Check the service URL`,
    );
  // The parsed copy would have another order of fields, which files preserve.
  return { ...result, config: result.config as ServerWithConfig['config'] };
}
