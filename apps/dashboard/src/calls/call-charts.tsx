import '@mantine/charts/styles.css';
import { BarChart, LineChart } from '@mantine/charts';
import { Box, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Statistics, Usage } from '../api-types.ts';
import { Collapsible } from '../ui/collapsible.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { Loading } from '../ui/states/loading.tsx';
import { Hint } from '../ui/text/hint.tsx';
import type { CallFilter, Period } from './call-filter.ts';
import { StatisticsTable, useStatistics } from './statistics-table.tsx';

/** Charts of calls, errors, and durations over time. Statistics exist only by server and tool. */
export function CallCharts({ filter }: { filter: CallFilter }) {
  const { view, outcome, caller, key } = filter;
  const query = useStatistics(filter, 48);
  return (
    <Stack gap="xs">
      {(view || outcome || caller || key) && <Hint>The charts use only the Server, Tool, and Time filters.</Hint>}
      <Loaded query={query} loading={<Loading rows={1} height={260} />}>
        {(statistics) =>
          statistics && statistics.buckets.length > 0 && <Charts statistics={statistics} period={filter.period} />
        }
      </Loaded>
    </Stack>
  );
}

const sharedProps = { h: 170, dataKey: 'at', withLegend: true, gridAxis: 'x', tickLine: 'none' } as const;
const axis = { minTickGap: 40, interval: 'preserveStartEnd' } as const;

type Counts = { at: string; calls: number; errors: number };

/** Chart of calls and errors over time. `at` is the label of an interval. */
function CallsChart({ counts }: { counts: readonly Counts[] }) {
  const formatSum = (name: 'calls' | 'errors') =>
    counts.reduce((sum, count) => sum + count[name], 0).toLocaleString('en');
  return (
    <ChartCard title="Calls" text={`${formatSum('calls')} total, ${formatSum('errors')} failed`}>
      <BarChart
        {...sharedProps}
        data={counts.map(({ at, calls, errors }) => ({ at, OK: calls - errors, Failed: errors }))}
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

const dayMs = 86_400_000;

/** Chart of calls per day, including days without calls. */
export function DaysChart({ usage }: { usage: Usage }) {
  const byDay = new Map(usage.by_day.map((sum) => [sum.day, sum]));
  const from = Date.parse(usage.from);
  const days = Array.from({ length: (Date.parse(usage.to) - from) / dayMs }, (_, index) => {
    const at = new Date(from + index * dayMs);
    const { calls = 0, errors = 0 } = byDay.get(at.toISOString().slice(0, 10)) ?? {};
    return { at: at.toLocaleDateString('en', { month: 'short', day: 'numeric', timeZone: 'UTC' }), calls, errors };
  });
  return <CallsChart counts={days} />;
}

/** Number of calls from which dots would hide the lines. */
const maxCallsWithDots = 400;

function Charts({ statistics, period }: { statistics: Statistics; period: Period }) {
  const isLongerThanDay = statistics.bucket_ms * statistics.buckets.length > 1.5 * dayMs;
  const day = isLongerThanDay ? ({ month: 'short', day: 'numeric' } as const) : {};
  const counts = statistics.buckets.map((bucket) => ({
    ...bucket,
    at: new Date(bucket.at).toLocaleString('en', { ...day, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }),
  }));
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
      <CallsChart counts={counts} />
      <ChartCard title="Duration, ms" text="Median (p50) and 95th percentile (p95)">
        <LineChart
          {...sharedProps}
          data={counts.map(({ at, p50_ms, p95_ms }) => ({ at, p50: p50_ms ?? null, p95: p95_ms ?? null }))}
          curveType="monotone"
          connectNulls
          withDots={counts.reduce((sum, { calls }) => sum + calls, 0) < maxCallsWithDots}
          dotProps={{ r: 2 }}
          xAxisProps={axis}
          yAxisProps={{ width: 40 }}
          series={[
            { name: 'p50', color: 'var(--th-accent)' },
            { name: 'p95', color: 'var(--th-warn)' },
          ]}
        />
      </ChartCard>
      {statistics.by_tool.length > 0 && (
        <Box style={{ gridColumn: '1 / -1' }}>
          <Collapsible label="By tool">
            <div className="th-card">
              <StatisticsTable label="Calls by tool" rows={statistics.by_tool} period={period} />
            </div>
          </Collapsible>
        </Box>
      )}
    </SimpleGrid>
  );
}

function ChartCard({ title, text, children }: { title: string; text: string; children: ReactNode }) {
  return (
    // A chart is first drawn with a default width, which must not widen the page on a phone.
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
        <Hint size="xs">{text}</Hint>
      </Group>
      {children}
    </Box>
  );
}
