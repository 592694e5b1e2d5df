import '@mantine/charts/styles.css';
import { BarChart, LineChart } from '@mantine/charts';
import { Box, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Statistics } from '../answers.ts';
import { ApiProblem, api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { Folded } from '../ui/folded.tsx';
import { type Column, Rows } from '../ui/rows.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { Loading } from '../ui/states/loading.tsx';
import { visible } from '../ui/text/visible.ts';
import { type CallFilter, queryOf } from './call-filter.ts';

/** The filters that statistics do not have, and their labels. */
const uncounted = [
  ['view', 'View'],
  ['outcome', 'Outcome'],
  ['caller', 'Caller'],
  ['key', 'API key'],
] as const;
const alternatives = new Intl.ListFormat('en', { type: 'disjunction' });

/** Calls, errors and how long calls took, over time. They are counted by server and tool only. */
export function CallCharts({ filter }: { filter: CallFilter }) {
  const { server, tool, period } = filter;
  const unused = uncounted.flatMap(([name, label]) => (filter[name] === undefined ? [] : [label]));
  const query = useQuery({
    queryKey: queryKeys.statistics({ server, tool, period }),
    queryFn: async ({ signal }) => {
      const { slug, since } = queryOf(filter);
      try {
        return await api('getCallStatistics', { slug, tool, since, buckets: 48 }, { signal });
      } catch (error) {
        if (error instanceof ApiProblem && error.status === 404) return null;
        throw error;
      }
    },
    refetchInterval: 15_000,
  });
  return (
    <Stack gap="xs">
      {unused.length > 0 && (
        <Text size="sm" c="dimmed">
          The charts follow the filters Server, Tool and Time, not {alternatives.format(unused)}.
        </Text>
      )}
      <Loaded query={query} loading={<Loading rows={1} height={260} />}>
        {(statistics) => (statistics && statistics.buckets.length > 0 ? <Charts statistics={statistics} /> : null)}
      </Loaded>
    </Stack>
  );
}

const shared = { h: 170, dataKey: 'at', withLegend: true, gridAxis: 'x', tickLine: 'none' } as const;
const axis = { minTickGap: 40, interval: 'preserveStartEnd' } as const;

/** Calls and errors over time; `at` is the label of an interval. */
export function CallsChart({ counts }: { counts: readonly { at: string; calls: number; errors: number }[] }) {
  const calls = counts.reduce((sum, one) => sum + one.calls, 0);
  const errors = counts.reduce((sum, one) => sum + one.errors, 0);
  return (
    <ChartCard title="Calls" text={`${calls.toLocaleString('en')} in this time, ${errors.toLocaleString('en')} failed`}>
      <BarChart
        {...shared}
        data={counts.map((one) => ({ at: one.at, OK: one.calls - one.errors, Failed: one.errors }))}
        type="stacked"
        xAxisProps={axis}
        yAxisProps={{ allowDecimals: false, width: 40 }}
        series={[
          { name: 'OK', color: 'var(--th-accent)' },
          { name: 'Failed', color: 'var(--th-bad)' },
        ]}
      />
    </ChartCard>
  );
}

function Charts({ statistics }: { statistics: Statistics }) {
  const isLong = statistics.bucket_ms * statistics.buckets.length > 36 * 3_600_000;
  const label = (at: string) =>
    new Date(at).toLocaleString('en', {
      ...(isLong ? { month: 'short', day: 'numeric' } : {}),
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    });
  const data = statistics.buckets.map(({ at, p50_ms, p95_ms }) => ({
    at: label(at),
    p50: p50_ms ?? null,
    p95: p95_ms ?? null,
  }));
  const calls = statistics.buckets.reduce((sum, bucket) => sum + bucket.calls, 0);
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
      <CallsChart counts={statistics.buckets.map((bucket) => ({ ...bucket, at: label(bucket.at) }))} />
      <ChartCard title="Time in ms" text="Half of the calls (p50) and 95 of 100 (p95) took no longer">
        <LineChart
          {...shared}
          data={data}
          curveType="monotone"
          connectNulls
          withDots={calls < 400}
          dotProps={{ r: 2 }}
          xAxisProps={axis}
          yAxisProps={{ width: 40 }}
          series={[
            { name: 'p50', color: 'var(--th-accent)' },
            { name: 'p95', color: 'var(--th-warn)' },
          ]}
        />
      </ChartCard>
      <BusyTools rows={statistics.by_tool} />
    </SimpleGrid>
  );
}

function ChartCard({ title, text, children }: { title: string; text: string; children: ReactNode }) {
  return (
    // A chart is drawn once before it is measured, wider than a phone. That must not widen the page.
    <Box
      className="th-card"
      p="md"
      component="section"
      aria-label={`${title}: ${text}`}
      miw={0}
      style={{ overflowX: 'clip' }}
    >
      <Group gap="xs" mb="sm" align="baseline">
        <Text fw={600} size="sm">
          {title}
        </Text>
        <Text size="xs" c="dimmed">
          {text}
        </Text>
      </Group>
      {children}
    </Box>
  );
}

type Row = Statistics['by_tool'][number];

const columns: Column<Row>[] = [
  {
    label: 'Tool',
    cell: ({ slug, tool }) => (
      <Text size="sm" className="th-mono">
        {visible(slug)} / {visible(tool)}
      </Text>
    ),
  },
  { label: 'Calls', end: true, cell: ({ calls }) => calls.toLocaleString('en') },
  { label: 'Failed', end: true, cell: ({ errors }) => errors.toLocaleString('en') },
  { label: 'p50', end: true, cell: ({ p50_ms }) => (p50_ms === undefined ? '–' : `${p50_ms} ms`) },
  { label: 'p95', end: true, cell: ({ p95_ms }) => (p95_ms === undefined ? '–' : `${p95_ms} ms`) },
];

/** The same numbers tool by tool, most called first. */
function BusyTools({ rows }: { rows: readonly Row[] }) {
  if (rows.length === 0) return null;
  return (
    <Box style={{ gridColumn: '1 / -1' }}>
      <Folded label="By tool">
        <div className="th-card">
          <Rows label="Calls by tool" columns={columns} rows={rows} keyOf={({ slug, tool }) => `${slug}/${tool}`} />
        </div>
      </Folded>
    </Box>
  );
}
