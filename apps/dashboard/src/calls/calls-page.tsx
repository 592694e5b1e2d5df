import { Button, Stack } from '@mantine/core';
import { IconActivity } from '@tabler/icons-react';
import { lazy, Suspense } from 'react';
import { Link, useParams } from 'react-router';
import { getOperationUrl } from '../api.ts';
import type { Call } from '../api-types.ts';
import { queryKeys } from '../query-keys.ts';
import { ExportButton } from '../ui/actions/export-button.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { PagedList } from '../ui/paged-list.tsx';
import { type Column, Count } from '../ui/rows.tsx';
import { Empty } from '../ui/states/empty.tsx';
import { LoadingCharts } from '../ui/states/loading.tsx';
import { ClockTime, formatExactTime } from '../ui/text/time.tsx';
import { usePages } from '../use-operation-query.ts';
import { toCallQuery, useCallFilter } from './call-filter.ts';
import { formatCaller, Outcome } from './call-labels.tsx';
import { CallList } from './call-list.tsx';
import { FilterBar } from './filter-bar.tsx';

const CallCharts = lazy(async () => ({ default: (await import('./call-charts.tsx')).CallCharts }));

export function CallsPage() {
  return (
    <>
      <PageHeader
        title="Calls"
        guide="docs/troubleshooting.md"
        text="Arguments and results are recorded only while capture is on."
      >
        <ExportCalls />
      </PageHeader>
      <CallBrowser />
    </>
  );
}

const columns: Column<Call>[] = [
  { label: 'Time', cell: ({ at }) => <ClockTime at={at} /> },
  { label: 'Outcome', narrow: 'end', cell: (call) => <Outcome call={call} /> },
  { label: 'Caller', cell: (call) => formatCaller(call.caller_kind) },
  {
    label: 'Duration, ms',
    narrow: 'hidden',
    isEndAligned: true,
    cell: ({ duration_ms }) => <Count value={duration_ms} />,
  },
];

/** Live list of calls of the server in the URL, or of all servers. */
export function CallBrowser() {
  const { slug: server } = useParams();
  const callFilter = useCallFilter({ server });
  const { filter, isNarrowed } = callFilter;
  const isSingleServer = server !== undefined;
  const pages = usePages(queryKeys.calls(filter), 'listCalls', () => ({ ...toCallQuery(filter), limit: 50 }), 5_000);
  const getEmptyTitle = (searchedTo: string | undefined) => {
    if (!isNarrowed) return 'No calls in this period';
    return `No calls match the filters${searchedTo ? ` back to ${formatExactTime(searchedTo)}` : ' in this period'}`;
  };
  return (
    <>
      <FilterBar {...callFilter} isSingleServer={isSingleServer}>
        {isSingleServer && <ExportCalls server={server} />}
      </FilterBar>
      <Stack gap="md">
        <Suspense fallback={<LoadingCharts count={2} />}>
          <CallCharts filter={filter} />
        </Suspense>
        <PagedList pages={pages} getRows={(page) => page.calls} nextPageLabel="Show older calls">
          {(calls, lastPage) => (
            <>
              {calls.length === 0 && (
                <Empty icon={<IconActivity />} title={getEmptyTitle(lastPage?.searched_to)}>
                  {!isNarrowed && (
                    <Button component={Link} to={isSingleServer ? `/servers/${server}/try` : '/servers'}>
                      {isSingleServer ? 'Try a tool' : 'Connect a client'}
                    </Button>
                  )}
                </Empty>
              )}
              <CallList
                label="Calls"
                rows={calls}
                columns={columns}
                isSingleServer={isSingleServer}
                callFilter={callFilter}
              />
            </>
          )}
        </PagedList>
      </Stack>
    </>
  );
}

/** Link to the filtered calls as a file. */
function ExportCalls({ server }: { server?: string }) {
  const { filter } = useCallFilter({ server });
  return <ExportButton href={getOperationUrl('exportCalls', toCallQuery(filter))}>Export CSV</ExportButton>;
}
