import type { Allowance } from '../connection/answer.ts';
import { type ListPage, pagesOf, type ReadPage } from '../connection/pages.ts';

/** A record of a list that is ordered newest first. */
export type Dated = { id: string; at: string };

export type RecordPage<Item> = { records: Item[]; next: string | undefined };

/** Reads one page. `since` is in epoch ms. */
export type ReadRecords<Item> = (
  wanted: { since: number | undefined; cursor?: string; limit: number },
  allowance: Allowance,
) => Promise<RecordPage<Item>>;

/** Pages of records from a time on, at most `most` records. @throws AppError as `pagesOf` */
export function recordPages<Item extends Dated>(
  read: ReadRecords<Item>,
  since: number | undefined,
  most = Number.POSITIVE_INFINITY,
): AsyncGenerator<ListPage<Item>> {
  const readPage: ReadPage<Item> = async (wanted, allowance) => {
    const { records, next } = await read({ since, ...wanted }, allowance);
    return { entries: records, next };
  };
  return pagesOf(readPage, { most });
}

/** The newest records, newest first, and the cursor of those before them. */
export async function newestRecords<Item extends Dated>(
  read: ReadRecords<Item>,
  most: number,
  since?: number,
): Promise<RecordPage<Item>> {
  const records: Item[] = [];
  let next: string | undefined;
  for await (const page of recordPages(read, since, most)) {
    records.push(...page.entries);
    next = page.next;
  }
  return { records, next };
}
