import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { Verdict } from '../../../answers.ts';
import { api } from '../../../api.ts';
import { type Config, unchecked } from '../../config.ts';

/** A verdict with its configuration, which may be older than the one on screen. */
export type CheckedConfig = { config: Config; verdict: Verdict };

/** The verdict of the service on a configuration while it is edited. `isBehind` while it is about an older one. */
export function useVerdict(config: Config): { checked: CheckedConfig | undefined; isBehind: boolean } {
  const [settled] = useDebouncedValue(config, 300);
  const query = useQuery({
    // As text: a configuration with its fields in another order counts as another one.
    queryKey: ['verdict', JSON.stringify(settled)],
    queryFn: async ({ signal }): Promise<CheckedConfig> => ({
      config: settled,
      verdict: await api('checkMcpServer', unchecked(settled), { signal }),
    }),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    gcTime: 10_000,
  });
  return { checked: query.data, isBehind: settled !== config || query.isFetching };
}
