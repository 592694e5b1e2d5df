import type { Output } from '../../operations/index.ts';
import { readList } from './pages.ts';
import type { RestClient } from './rest-client.ts';

export type ListedServer = Output<'listMcpServers'>['servers'][number];

/** All servers that the credential may see. @throws AppError */
export function listedServers(client: RestClient): Promise<ListedServer[]> {
  return readList(async (wanted, allowance) => {
    const { servers, next_cursor: next } = await client.run('listMcpServers', wanted, allowance);
    return { entries: servers, next };
  });
}
