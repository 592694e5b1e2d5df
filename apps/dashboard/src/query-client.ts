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
 * Refetches data after a change. Requests that were sent before the change are canceled, because their responses may
 * be older, and TanStack Query would accept such a response if it is the first one of a query.
 */
export async function refetchQueries(client: QueryClient, filters: QueryFilters = {}): Promise<void> {
  // Active queries stay in the loading state until the next response. The others return to their previous state.
  void client.cancelQueries({ ...filters, type: 'active' }, { silent: true, revert: false });
  void client.cancelQueries({ ...filters, type: 'inactive' });
  await client.invalidateQueries(filters);
}
