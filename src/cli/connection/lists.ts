import { z } from 'zod';
import { isSlug } from '../../domain/slug.ts';
import { AppError } from '../../errors.ts';
import type { Input, OperationName, Output } from '../../operations/index.ts';
import type { RestClient } from './rest-client.ts';

export type ListPage<Entry> = { entries: readonly Entry[]; next: string | undefined };

/** Reads one page. Its input has the fields that lists of the service take. */
export type ReadPage<Entry> = (wanted: { cursor?: string; limit: number }) => Promise<ListPage<Entry>>;

/** The entries of an operation's list whose output has it under one name. */
type ListName<Name extends OperationName> = keyof Output<Name> & string;
type EntryOf<List> = List extends readonly (infer Entry)[] ? Entry : never;

/** Reads pages of the list that an operation gives under a name. */
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

/** Entries of one page; the most that lists of the service give. */
export const mostOfPage = 200;

/** Pages of one list: 400,000 entries. */
const mostPages = 2000;
/** Pages without an entry, one after the other. With a rare filter each of them stands for 25,000 calls. */
const mostEmptyPages = 100;
/** Longer ones are refused by every list. */
const longestCursor = 500;

type Wanted = { most?: number; ofPage?: number };

/**
 * The pages of a list, until `most` entries were read or the list ends. A service that is hostile or broken cannot keep
 * a command reading: a page has no more entries than were asked for, a cursor comes once, and their number is
 * limited.
 * @throws AppError tooLarge beyond a limit, unavailable for an answer that no list gives
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
      throw new AppError('invalid', `the service gave ${entries.length} entries where ${limit} were asked for`);
    found += entries.length;
    empty = entries.length === 0 ? empty + 1 : 0;
    if (next !== undefined && (next.length > longestCursor || cursors.has(next)))
      throw new AppError(
        'invalid',
        'the service gave a next_cursor twice, or one that is too long, so its list has no end',
      );
    yield page;
    if (next === undefined || found >= most) return;
    if (empty >= mostEmptyPages)
      throw new AppError(
        'tooLarge',
        `the service gave ${empty} pages without an entry; ask for less, such as a later time`,
      );
    cursors.add(next);
    cursor = next;
  }
  throw new AppError('tooLarge', `the list of the service has more than ${mostPages} pages; ask for less`);
}

/** Every entry of a list. @throws AppError as `pagesOf` */
export async function readList<Entry>(read: ReadPage<Entry>, wanted: Wanted = {}): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const page of pagesOf(read, wanted)) entries.push(...page.entries);
  return entries;
}

export type ListedServer = Output<'listMcpServers'>['servers'][number];

/** All servers that the credential may see. @throws AppError */
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

/** Fields of a configuration that commands use. The service may be of another version, and have others. */
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
 * A server with its configuration, whose slug is the one that was asked for: files are named by it.
 * @throws AppError as `RestClient.run`, and unavailable for another server or no configuration
 */
export async function oneServer(client: RestClient, slug: string): Promise<OneServer> {
  const answer = await client.run('getMcpServer', { slug });
  const read = usedFields.safeParse(answer.config);
  if (!read.success || read.data.slug !== slug.toLowerCase())
    throw new AppError(
      'unavailable',
      `the service answered with no configuration of the server ${JSON.stringify(slug)}; is its address right?`,
    );
  // As it came, because its order counts in files.
  return { ...answer, config: answer.config as OneServer['config'] };
}
