import { type QueryKey, useQuery } from '@tanstack/react-query';

/** Returns a flag that the query client sets; see `query-client.ts`. */
export function useFlag(queryKey: QueryKey): boolean {
  return useQuery({ queryKey, queryFn: () => false, enabled: false, initialData: false }).data;
}
