import { AppError } from '../../errors.ts';
import type { Output } from '../../operations/index.ts';
import { type Allowance, newAllowance } from './answer.ts';
import type { RestClient } from './rest-client.ts';

export type ListPage<Entry> = { entries: readonly Entry[]; next: string | undefined };

/** Reads one page. Its input has the fields that lists of the service take. */
export type ReadPage<Entry> = (
  wanted: { cursor?: string; limit: number },
  allowance: Allowance,
) => Promise<ListPage<Entry>>;

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
 * a command reading: a page has no more entries than were asked for, a cursor comes once, and pages, bytes and time have
 * limits.
 * @throws AppError tooLarge beyond a limit, unavailable for an answer that no list gives
 */
export async function* pagesOf<Entry>(
  read: ReadPage<Entry>,
  { most = Number.POSITIVE_INFINITY, ofPage = mostOfPage }: Wanted = {},
): AsyncGenerator<ListPage<Entry>> {
  const allowance = newAllowance();
  const cursors = new Set<string>();
  let [found, empty] = [0, 0];
  let cursor: string | undefined;
  for (let pages = 0; pages < mostPages; pages++) {
    const limit = Math.min(ofPage, most - found);
    const page = await read(cursor === undefined ? { limit } : { cursor, limit }, allowance);
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
export async function readList<Entry>(read: ReadPage<Entry>): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const page of pagesOf(read)) entries.push(...page.entries);
  return entries;
}

export type ListedServer = Output<'listMcpServers'>['servers'][number];

/** All servers that the credential may see. @throws AppError */
export function listedServers(client: RestClient): Promise<ListedServer[]> {
  return readList(async (wanted, allowance) => {
    const { servers, next_cursor: next } = await client.run('listMcpServers', wanted, allowance);
    return { entries: servers, next };
  });
}
