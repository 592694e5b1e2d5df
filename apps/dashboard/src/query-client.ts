import { MutationCache, QueryCache, QueryClient, type QueryFilters, replaceEqualDeep } from '@tanstack/react-query';
import { ApiProblem } from './api.ts';
import { hasRawNumber } from './exact-json.ts';
import { queryKeys } from './query-keys.ts';

/**
 * Creates the query client. It retries only requests that can succeed later, and records when the session has ended or
 * the service is unreachable.
 */
export function createQueryClient(): QueryClient {
  const recordFailure = (error: unknown) => {
    if (!(error instanceof ApiProblem)) return;
    if (error.status === 401) client.setQueryData(queryKeys.sessionEnded, true);
    client.setQueryData(queryKeys.unreachable, error.status === 0);
  };
  const recordSuccess = () => {
    if (!client.getQueryData(queryKeys.unreachable)) return;
    client.setQueryData(queryKeys.unreachable, false);
    // Reruns the queries that failed in the meantime.
    void client.invalidateQueries();
  };
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: recordFailure,
      onSuccess: (_data, query) => {
        if (query.queryKey[0] === 'session') client.setQueryData(queryKeys.sessionEnded, false);
        recordSuccess();
      },
    }),
    mutationCache: new MutationCache({ onError: recordFailure, onSuccess: recordSuccess }),
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        networkMode: 'always',
        refetchOnReconnect: 'always',
        retry: (count, error) =>
          error instanceof ApiProblem && (error.status === 0 || error.status >= 500) && count < 1,
        retryDelay: 600,
        // Structural sharing would turn raw numbers into ordinary objects.
        structuralSharing: (before, after) => (hasRawNumber(after) ? after : replaceEqualDeep(before, after)),
      },
      mutations: { networkMode: 'always' },
    },
  });
  return client;
}

/**
 * Refetches data after a change. Requests that were sent before it are canceled: their responses may be older than the
 * change, and TanStack Query would take such a response for the new one if it is the first of its query.
 */
export async function refetchQueries(client: QueryClient, filters: QueryFilters = {}): Promise<void> {
  // Active queries revert to loading and get the response of the next request.
  void client.cancelQueries({ ...filters, type: 'active' }, { silent: true, revert: false });
  void client.cancelQueries({ ...filters, type: 'inactive' });
  await client.invalidateQueries(filters);
}
