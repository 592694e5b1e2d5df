import { Button, Stack } from '@mantine/core';
import { IconActivity, IconDownload } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { addressOf, api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { More } from '../ui/more.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { Empty } from '../ui/states/empty.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { Loading } from '../ui/states/loading.tsx';
import { CallDrawer } from './call-drawer.tsx';
import { isNarrowed, queryOf, useCallFilter } from './call-filter.ts';
import { CallList } from './call-list.tsx';
import { FilterBar } from './filter-bar.tsx';

const CallCharts = lazy(async () => ({ default: (await import('./call-charts.tsx')).CallCharts }));

export function CallsPage() {
  return (
    <>
      <PageHeader
        title="Calls"
        guide="docs/troubleshooting.md"
        text="Every tool call of this workspace, newest first. Arguments and answers are not recorded unless capture is on."
      />
      <CallBrowser />
    </>
  );
}

/** Calls as they happen, of one server or of all. */
export function CallBrowser({ server }: { server?: string }) {
  const { filter, opened, change, clear } = useCallFilter({ server });
  const pages = useInfiniteQuery({
    queryKey: queryKeys.calls(filter),
    queryFn: ({ pageParam, signal }) =>
      api('listCalls', { ...queryOf(filter), limit: 50, cursor: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 1) > 1 ? false : 5_000),
  });
  return (
    <>
      <FilterBar filter={filter} isOfServer={server !== undefined} onChange={change} onClear={clear}>
        <Button
          component="a"
          href={addressOf('exportCalls', queryOf(filter))}
          download
          variant="default"
          leftSection={<IconDownload size={16} />}
        >
          Export as CSV
        </Button>
      </FilterBar>
      <Stack gap="md">
        <Suspense fallback={<Loading rows={1} height={260} />}>
          <CallCharts filter={filter} />
        </Suspense>
        <Loaded query={pages}>
          {({ pages: answers }) => {
            const calls = answers.flatMap((page) => page.calls);
            const searchedTo = answers.at(-1)?.searched_to;
            return (
              <>
                <div className="th-card">
                  {calls.length === 0 ? (
                    <Empty
                      icon={<IconActivity size={24} />}
                      title="No calls"
                      text={
                        isNarrowed(filter, server)
                          ? searchedTo
                            ? `None of the calls since ${new Date(searchedTo).toLocaleString('en')} fit the filter. Older ones were not looked through yet.`
                            : 'None fit the filter and the time.'
                          : 'None in this time. Try a tool, or connect a client to a server: its calls appear here as they happen.'
                      }
                    />
                  ) : (
                    <CallList
                      calls={calls}
                      isOfServer={server !== undefined}
                      onOpen={(call) => change('call', call.id)}
                    />
                  )}
                </div>
                <More pages={pages}>Show older calls</More>
                <CallDrawer
                  id={opened}
                  known={calls.find(({ id }) => id === opened)}
                  onClose={() => change('call', undefined)}
                />
              </>
            );
          }}
        </Loaded>
      </Stack>
    </>
  );
}
