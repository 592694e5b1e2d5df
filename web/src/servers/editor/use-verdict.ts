import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { Verdict } from '../../answers.ts';
import { api } from '../../api.ts';
import { type Config, unjudged } from '../config.ts';

/** A verdict with the configuration that it judges, which may be older than the one on screen. */
export type Judged = { config: Config; verdict: Verdict };

/** What the service thinks of a configuration while it is being written. `isBehind` while that is about an older one. */
export function useVerdict(config: Config): { judged: Judged | undefined; isBehind: boolean } {
  const [settled] = useDebouncedValue(config, 300);
  const query = useQuery({
    // As text: a configuration whose fields only stand in another order is another one.
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
