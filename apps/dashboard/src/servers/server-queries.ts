import { useQueries } from '@tanstack/react-query';
import type { Input } from '@toolhost/server/operations';
import { api, orIfNotFound } from '../api.ts';
import type { Activity } from '../api-types.ts';
import { queryKeys } from '../query-keys.ts';
import { useOperationQuery, usePages } from '../use-operation-query.ts';

const pageSize = 50;

export type Listing = Pick<Input<'listMcpServers'>, 'query' | 'sort'>;

export function useServerPages(listing: Listing) {
  return usePages([...queryKeys.servers, 'pages', listing], 'listMcpServers', { ...listing, limit: pageSize });
}

/** Fetches servers to choose from. The first 200 are enough for a list. */
export function useServerChoices() {
  return useOperationQuery([...queryKeys.servers, 'choices'], 'listMcpServers', { limit: 200 }).data?.servers ?? [];
}

/** Fetches a server with its configuration. Disabled without a slug. */
export function useServer(slug = '') {
  return useOperationQuery(queryKeys.server(slug), 'getMcpServer', { slug }, { enabled: slug !== '' });
}

/** Fetches the last 24 hours' calls for servers on these pages. Empty if the service does not collect statistics. */
export function useActivity(listing: Listing, cursors: readonly (string | undefined)[]): ReadonlyMap<string, Activity> {
  const pages = useQueries({
    queries: cursors.map((cursor) => ({
      queryKey: [...queryKeys.activity, listing, cursor ?? ''],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        orIfNotFound(api('getServerActivity', { ...listing, limit: pageSize, cursor }, { signal }), { servers: [] }),
      refetchInterval: 30_000,
    })),
  });
  return new Map(pages.flatMap(({ data }) => data?.servers ?? []).map((activity) => [activity.slug, activity]));
}
