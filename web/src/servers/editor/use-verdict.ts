import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api } from '../../api.ts';
import type { Verdict } from '../../api-types.ts';
import type { Config } from '../config.ts';

/** What the service thinks of a configuration while it is being written. */
export function useVerdict(config: Config): { verdict: Verdict | undefined; isBehind: boolean } {
  const [settled] = useDebouncedValue(config, 300);
  const query = useQuery({
    queryKey: ['verdict', settled],
    queryFn: ({ signal }) => api<Verdict>('POST', '/check', { body: settled, signal }),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    gcTime: 10_000,
  });
  return { verdict: query.data, isBehind: settled !== config || query.isFetching };
}
