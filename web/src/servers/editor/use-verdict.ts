import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { Verdict } from '../../answers.ts';
import { api } from '../../api.ts';
import { type Config, unjudged } from '../config.ts';

/** A verdict with its configuration, which may be older than the one on screen. */
export type Judged = { config: Config; verdict: Verdict };

/** The verdict of the service on a configuration while it is edited. `isBehind` while it is about an older one. */
export function useVerdict(config: Config): { judged: Judged | undefined; isBehind: boolean } {
  const [settled] = useDebouncedValue(config, 300);
  const query = useQuery({
    // As text: a configuration with its fields in another order counts as another one.
    queryKey: ['verdict', JSON.stringify(settled)],
    queryFn: async ({ signal }): Promise<Judged> => ({
      config: settled,
      verdict: await api('checkMcpServer', unjudged(settled), { signal }),
    }),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    gcTime: 10_000,
  });
  return { judged: query.data, isBehind: settled !== config || query.isFetching };
}
