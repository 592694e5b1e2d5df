/** A record of a list that is ordered newest first. */
export type Dated = { id: string; at: string };

export type RecordPage<Item> = { records: Item[]; next: string | undefined };

/** Reads one page. `since` is in epoch ms. */
export type ReadPage<Item> = (wanted: {
  since: number | undefined;
  cursor: string | undefined;
  limit: number;
}) => Promise<RecordPage<Item>>;

/** Largest page of every list. */
export const pageSize = 200;

/** The newest records, newest first, and the cursor of those before them. */
export async function newestRecords<Item extends Dated>(
  read: ReadPage<Item>,
  most: number,
  since?: number,
): Promise<RecordPage<Item>> {
  const records: Item[] = [];
  let next: string | undefined;
  do {
    const page = await read({ since, cursor: next, limit: Math.min(pageSize, most - records.length) });
    records.push(...page.records);
    next = page.next;
  } while (next !== undefined && records.length < most);
  return { records, next };
}
