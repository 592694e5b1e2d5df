import { type QueryKey, useQuery } from '@tanstack/react-query';

/** Something that the query client has noticed; see `query-client.ts`. */
export function useFlag(queryKey: QueryKey): boolean {
  return useQuery({ queryKey, queryFn: () => false, enabled: false, initialData: false }).data;
}
