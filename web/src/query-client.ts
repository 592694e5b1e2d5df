import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiProblem } from './api.ts';
import { queryKeys } from './query-keys.ts';

/** Asks again only where asking again can help, and notices when the session has ended. */
export function createQueryClient(): QueryClient {
  const noticeEnd = (error: unknown) => {
    if (error instanceof ApiProblem && error.status === 401) client.setQueryData(queryKeys.sessionEnded, true);
  };
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: noticeEnd,
      onSuccess: (_data, query) => {
        if (query.queryKey[0] === 'session') client.setQueryData(queryKeys.sessionEnded, false);
      },
    }),
    mutationCache: new MutationCache({ onError: noticeEnd }),
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        networkMode: 'always',
        retry: (count, error) =>
          error instanceof ApiProblem && (error.status === 0 || error.status >= 500) && count < 1,
        retryDelay: 600,
      },
      mutations: { networkMode: 'always' },
    },
  });
  return client;
}
