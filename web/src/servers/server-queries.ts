import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { ApiProblem, api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';

export function useServerPages() {
  return useInfiniteQuery({
    queryKey: [...queryKeys.servers, 'pages'],
    queryFn: ({ pageParam, signal }) => api('listMcpServers', { limit: 50, cursor: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
  });
}

/** Slugs to choose from; the first two hundred are enough for a list. */
export function useServerChoices() {
  return useQuery({
    queryKey: [...queryKeys.servers, 'choices'],
    queryFn: async ({ signal }) => (await api('listMcpServers', { limit: 200 }, { signal })).servers,
  });
}

export function useServer(slug: string) {
  return useQuery({
    queryKey: queryKeys.server(slug),
    queryFn: ({ signal }) => api('getMcpServer', { slug }, { signal }),
  });
}

/** Calls of the last day by server; undefined where the service does not count them. */
export function useActivity() {
  return useQuery({
    queryKey: queryKeys.activity,
    queryFn: async ({ signal }) => {
      try {
        return (await api('getServerActivity', {}, { signal })).servers;
      } catch (error) {
        if (error instanceof ApiProblem && error.status === 404) return [];
        throw error;
      }
    },
    refetchInterval: 30_000,
  });
}
