import { Select, Stack } from '@mantine/core';
import { IconChartBar } from '@tabler/icons-react';
import { lazy, Suspense } from 'react';
import { useSearchParams } from 'react-router';
import { getOperationUrl } from '../api.ts';
import type { Usage } from '../api-types.ts';
import { callerLabels } from '../calls/call-labels.tsx';
import { useSession } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { ExportButton } from '../ui/actions/export-button.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { type Column, Count, RowName, Rows } from '../ui/rows.tsx';
import { Empty } from '../ui/states/empty.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { LoadingCharts } from '../ui/states/loading.tsx';
import { TextLink } from '../ui/text/text-link.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { useOperationQuery } from '../use-operation-query.ts';

const DaysChart = lazy(async () => ({ default: (await import('../calls/call-charts.tsx')).DaysChart }));

const periods = [
  { value: '7', label: 'Last 7 days' },
  { value: '30', label: 'Last 30 days' },
  { value: '90', label: 'Last 90 days' },
];

export function UsagePage() {
  const [search, setSearch] = useSearchParams();
  const { call_retention_days: retentionDays } = useSession();
  const selectedDays = periods.find(({ value }) => value === search.get('days'))?.value ?? '30';
  const days = Number(selectedDays);
  const query = useOperationQuery(queryKeys.usage(days), 'getUsage', { days });
  return (
    <>
      <PageHeader title="Usage" text="Days are in UTC.">
        <Select
          aria-label="Time"
          data={periods.filter(({ value }) => Number(value) <= Math.max(30, retentionDays))}
          value={selectedDays}
          onChange={(value) => setSearch({ days: value ?? '30' }, { replace: true })}
          w={150}
        />
        <ExportButton href={getOperationUrl('exportUsage', { days })}>Export CSV</ExportButton>
      </PageHeader>
      <Loaded query={query}>
        {(usage) =>
          usage.by_caller.length === 0 ? (
            <div className="th-card">
              <Empty icon={<IconChartBar size={24} />} title="No calls in this period" />
            </div>
          ) : (
            <Stack gap="md">
              <Suspense fallback={<LoadingCharts count={1} />}>
                <DaysChart usage={usage} />
              </Suspense>
              <div className="th-card">
                <Rows
                  label="Usage by key and server"
                  columns={columns}
                  rows={usage.by_caller}
                  getKey={({ server, caller }) => `${server} ${caller}`}
                />
              </div>
            </Stack>
          )
        }
      </Loaded>
    </>
  );
}

type Row = Usage['by_caller'][number];

const columns: Column<Row>[] = [
  {
    label: 'Caller',
    cell: ({ server, caller, caller_name: name }) => (
      <RowName
        name={
          <TextLink to={`/calls?server=${server}&period=30d&${callerLabels[caller] ? 'caller' : 'key'}=${caller}`}>
            {callerLabels[caller] ?? toVisible(name ?? 'Deleted key')}
          </TextLink>
        }
      >
        {!callerLabels[caller] && <span className="th-mono">{caller}</span>}
      </RowName>
    ),
  },
  { label: 'Server', cell: ({ server }) => <span className="th-mono">{toVisible(server)}</span> },
  { label: 'Calls', narrow: 'end', isEndAligned: true, cell: ({ calls }) => <Count value={calls} /> },
  { label: 'Failed', isEndAligned: true, cell: ({ errors }) => <Count value={errors} /> },
];
