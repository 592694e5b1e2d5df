import type { Output } from '../../operations/index.ts';
import type { RestClient } from './rest-client.ts';

/** Entries of one page; the largest that lists of the service give. */
export const mostOfPage = 200;

type Page<Entry> = { entries: readonly Entry[]; next: string | undefined };

/** Every entry of a list. `read` gets the cursor of a page as the input of an operation has it. */
export async function readList<Entry>(read: (from: { cursor?: string }) => Promise<Page<Entry>>): Promise<Entry[]> {
  const entries: Entry[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor === undefined ? {} : { cursor });
    entries.push(...page.entries);
    cursor = page.next;
  } while (cursor !== undefined);
  return entries;
}

export type ListedServer = Output<'listMcpServers'>['servers'][number];

/** All servers that the credential may see. @throws AppError */
export function listedServers(client: RestClient): Promise<ListedServer[]> {
  return readList(async (from) => {
    const { servers, next_cursor: next } = await client.run('listMcpServers', { limit: mostOfPage, ...from });
    return { entries: servers, next };
  });
}
