import { type QueryKey, type UseQueryOptions, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { OperationName, Output } from '../../src/operations/index.ts';
import { api } from './api.ts';

type Given<Name extends OperationName> = Parameters<typeof api<Name>>[1];
type Options<Name extends OperationName> = Pick<
  UseQueryOptions<Output<Name>>,
  'enabled' | 'refetchInterval' | 'staleTime'
>;

/** Queries an operation that reads. */
export function useAnswer<Name extends OperationName>(
  queryKey: QueryKey,
  name: Name,
  input: Given<Name>,
  options?: Options<Name>,
) {
  return useQuery({ queryKey, queryFn: ({ signal }) => api(name, input, { signal }), ...options });
}

type Listing = 'listMcpServers' | 'listVersions' | 'listCalls' | 'listAuditEvents' | 'listApiKeys' | 'listNotices';

/** Queries an operation that lists, one page at a time. Polls every `firstMs` while only the first page is loaded. */
export function usePages<Name extends Listing>(
  queryKey: QueryKey,
  name: Name,
  input: Given<Name> | (() => Given<Name>),
  firstMs?: number,
) {
  return useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => {
      const given = typeof input === 'function' ? (input as () => Given<Name>)() : input;
      return api(name, { ...given, cursor: pageParam }, { signal });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 1) === 1 && firstMs) || false,
  });
}
