import { type QueryKey, type UseQueryOptions, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { OperationName, Output } from '@toolhost/server/operations';
import { api } from './api.ts';

type OperationInput<Name extends OperationName> = Parameters<typeof api<Name>>[1];
type Options<Name extends OperationName> = Omit<UseQueryOptions<Output<Name>>, 'queryKey' | 'queryFn'>;

/** Queries an operation that changes nothing. */
export function useOperationQuery<Name extends OperationName>(
  queryKey: QueryKey,
  name: Name,
  input: OperationInput<Name>,
  options?: Options<Name>,
) {
  return useQuery({ queryKey, queryFn: ({ signal }) => api(name, input, { signal }), ...options });
}

type ListOperation =
  | 'listMcpServers'
  | 'listVersions'
  | 'listCalls'
  | 'listAuditEvents'
  | 'listApiKeys'
  | 'listNotifications';

/** Queries a list operation page by page. Polls every `pollMs` while only the first page is loaded. */
export function usePages<Name extends ListOperation>(
  queryKey: QueryKey,
  name: Name,
  input: OperationInput<Name> | (() => OperationInput<Name>),
  pollMs?: number,
) {
  return useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => {
      const resolvedInput = typeof input === 'function' ? (input as () => OperationInput<Name>)() : input;
      return api(name, { ...resolvedInput, cursor: pageParam }, { signal });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 1) === 1 && pollMs) || false,
  });
}
