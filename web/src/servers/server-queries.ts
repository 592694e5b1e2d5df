import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { ApiProblem, api, path } from '../api.ts';
import type { Activity, ServerDetail, ServerRecord } from '../api-types.ts';
import { queryKeys } from '../query-keys.ts';

type ServerPage = { servers: ServerRecord[]; next_cursor?: string };

export function useServerPages() {
  return useInfiniteQuery({
    queryKey: [...queryKeys.servers, 'pages'],
    queryFn: ({ pageParam, signal }) =>
      api<ServerPage>('GET', '/servers', { query: { limit: 50, cursor: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
  });
}

/** Slugs to choose from; the first two hundred are enough for a list. */
export function useServerChoices() {
  return useQuery({
    queryKey: [...queryKeys.servers, 'choices'],
    queryFn: async ({ signal }) =>
      (await api<ServerPage>('GET', '/servers', { query: { limit: 200 }, signal })).servers,
  });
}

export function useServer(slug: string) {
  return useQuery({
    queryKey: queryKeys.server(slug),
    queryFn: ({ signal }) => api<ServerDetail>('GET', path`/servers/${slug}`, { signal }),
  });
}

/** Calls of the last day by server; undefined where the service does not count them. */
export function useActivity() {
  return useQuery({
    queryKey: queryKeys.activity,
    queryFn: async ({ signal }) => {
      try {
        return (await api<{ servers: Activity[] }>('GET', '/activity', { signal })).servers;
      } catch (error) {
        if (error instanceof ApiProblem && error.status === 404) return [];
        throw error;
      }
    },
    refetchInterval: 30_000,
  });
}
