import { Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { api, path } from '../../api.ts';
import type { JsonObject, Preview } from '../../api-types.ts';
import { Loading } from '../../ui/loading.tsx';
import { messageOf } from '../../ui/problem-alert.tsx';
import { RequestView } from '../../ui/request-view.tsx';
import { Section } from '../../ui/section.tsx';

type Wanted = { slug: string; tool: string; values: JsonObject; isMissing: boolean };

/** The exact request that the arguments make, before anything is sent. `isBehind` while it is not of these arguments yet. */
export function usePreview({ slug, tool, values, isMissing }: Wanted) {
  const current = JSON.stringify(values);
  const [settled] = useDebouncedValue(current, 250);
  const query = useQuery({
    queryKey: ['preview', slug, tool, settled],
    queryFn: ({ signal }) =>
      api<Preview>('POST', path`/servers/${slug}/tools/${tool}/preview`, {
        body: { arguments: JSON.parse(settled) as JsonObject },
        signal,
      }),
    placeholderData: keepPreviousData,
    enabled: !isMissing,
    gcTime: 10_000,
  });
  return { query, isBehind: settled !== current || query.isFetching };
}

type Props = { preview: UseQueryResult<Preview>; isMissing: boolean };

export function Outgoing({ preview, isMissing }: Props) {
  return (
    <Section
      title="Outgoing request"
      text="What the API would receive; credentials are masked and nothing is sent yet."
    >
      {isMissing ? (
        <Text size="sm" c="dimmed">
          Fill in the required arguments to see the request.
        </Text>
      ) : preview.isError ? (
        <Text size="sm" c="error" role="status">
          {messageOf(preview.error)}
        </Text>
      ) : preview.data ? (
        <RequestView request={preview.data.request} curl={preview.data.curl} />
      ) : (
        <Loading rows={1} height={120} />
      )}
    </Section>
  );
}
