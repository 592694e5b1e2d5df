import { MutationCache, QueryCache, QueryClient, type QueryFilters, replaceEqualDeep } from '@tanstack/react-query';
import { ApiProblem } from './api.ts';
import { holdsRawNumber } from './exact-json.ts';
import { queryKeys } from './query-keys.ts';

/** Retries only requests that can succeed later, and notices when the session has ended or the service is out of reach. */
export function createQueryClient(): QueryClient {
  const noticeFailure = (error: unknown) => {
    if (!(error instanceof ApiProblem)) return;
    if (error.status === 401) client.setQueryData(queryKeys.sessionEnded, true);
    client.setQueryData(queryKeys.unreachable, error.status === 0);
  };
  const noticeAnswer = () => {
    if (!client.getQueryData(queryKeys.unreachable)) return;
    client.setQueryData(queryKeys.unreachable, false);
    // Queries that failed meanwhile are run again.
    void client.invalidateQueries();
  };
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: noticeFailure,
      onSuccess: (_data, query) => {
        if (query.queryKey[0] === 'session') client.setQueryData(queryKeys.sessionEnded, false);
        noticeAnswer();
      },
    }),
    mutationCache: new MutationCache({ onError: noticeFailure, onSuccess: noticeAnswer }),
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        networkMode: 'always',
        refetchOnReconnect: 'always',
        retry: (count, error) =>
          error instanceof ApiProblem && (error.status === 0 || error.status >= 500) && count < 1,
        retryDelay: 600,
        // It would make ordinary objects of numbers that keep their digits.
        structuralSharing: (before, after) => (holdsRawNumber(after) ? after : replaceEqualDeep(before, after)),
      },
      mutations: { networkMode: 'always' },
    },
  });
  return client;
}

/**
 * Reads answers again after a change. Requests that were sent before it are given up: their answers may be older than the
 * change, and TanStack Query would take such an answer for the new one where it is the first of its query.
 */
export async function readAgain(client: QueryClient, filters: QueryFilters = {}): Promise<void> {
  // What waits for a request on this page gets the answer of the next one.
  void client.cancelQueries({ ...filters, type: 'active' }, { silent: true, revert: false });
  void client.cancelQueries({ ...filters, type: 'inactive' });
  await client.invalidateQueries(filters);
}
