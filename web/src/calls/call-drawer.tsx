import { Drawer, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Call } from '../answers.ts';
import { ApiProblem, api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { Loaded } from '../ui/states/loaded.tsx';
import { visible } from '../ui/text/visible.ts';
import { CallFacts } from './call-facts.tsx';
import { CaptureView } from './capture-view.tsx';

type Props = { id: string | undefined; known: Call | undefined; onClose: () => void };

/** Everything about one call. */
export function CallDrawer({ id, known, onClose }: Props) {
  const query = useQuery({
    queryKey: queryKeys.call(id ?? ''),
    queryFn: async ({ signal }) => {
      try {
        return await api('getCall', { id: id ?? '' }, { signal });
      } catch (error) {
        if (known && error instanceof ApiProblem && error.status === 404) return { call: known };
        throw error;
      }
    },
    enabled: id !== undefined,
    staleTime: 60_000,
    ...(known && { placeholderData: { call: known } }),
  });
  const title = query.data ? visible(query.data.call.tool) : 'Call';
  return (
    <Drawer opened={id !== undefined} onClose={onClose} position="right" size="lg" title={title}>
      <Loaded query={query}>
        {(detail) => (
          <Stack gap="lg">
            <CallFacts detail={detail} />
            <CaptureView call={detail.call} capture={detail.capture} />
          </Stack>
        )}
      </Loaded>
    </Drawer>
  );
}
