import '@mantine/charts/styles.css';
import { BarChart, LineChart } from '@mantine/charts';
import { Box, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Statistics, Usage } from '../api-types.ts';
import { Collapsible } from '../ui/collapsible.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { LoadingCharts } from '../ui/states/loading.tsx';
import { Hint } from '../ui/text/hint.tsx';
import type { CallFilter, Period } from './call-filter.ts';
import { StatisticsTable, useStatistics } from './statistics-table.tsx';

/** Charts of calls, errors, and durations over time. Statistics exist only by server and tool. */
export function CallCharts({ filter }: { filter: CallFilter }) {
  const { view, outcome, caller, key } = filter;
  const query = useStatistics(filter, { hasIntervals: true });
  return (
    <Stack gap="xs">
      {(view || outcome || caller || key) && <Hint>The charts use only the Server, Tool, and Time filters.</Hint>}
      <Loaded query={query} loading={<LoadingCharts count={2} />}>
        {(statistics) =>
          statistics && statistics.buckets.length > 0 && <Charts statistics={statistics} period={filter.period} />
        }
      </Loaded>
    </Stack>
  );
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

type Interval = { at: string };

/** Returns the ticks of a number axis: two or three steps of 1, 2, or 5 × 10ⁿ, from zero to the maximum or more. */
export function getNumberTicks(max: number): number[] {
  const powers = Array.from({ length: 12 }, (_, exponent) => 10 ** exponent);
  const step = powers.flatMap((power) => [power, 2 * power, 5 * power]).find((size) => max / size <= 3) ?? max;
  return Array.from({ length: Math.max(1, Math.ceil(max / step)) + 1 }, (_, index) => index * step);
}

/** Returns the ticks of a time axis: some of the days, or whole hours and quarters of them. */
function getTimeTicks(intervals: readonly Interval[], lengthMs: number): string[] {
  const times = intervals.map(({ at }) => at);
  if (lengthMs >= dayMs) {
    const dayStep = Math.ceil(times.length / 8);
    return times.filter((_, index) => (times.length - 1 - index) % dayStep === 0);
  }
  const stepMinutes = lengthMs >= hourMs ? 360 : 15;
  return times.filter((at) => (new Date(at).getHours() * 60 + new Date(at).getMinutes()) % stepMinutes === 0);
}

/** Formats an interval: days in UTC, like the counts, and times in the local time zone. */
function formatInterval(at: string, lengthMs: number): string {
  if (lengthMs >= dayMs)
    return new Date(at).toLocaleDateString('en', { month: 'short', day: 'numeric', timeZone: 'UTC' });
  return new Date(at).toLocaleTimeString('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
}

/** Formats the length of an interval: "per hour", "per 5 minutes". */
function formatRate(lengthMs: number): string {
  const unit = lengthMs >= dayMs ? 'day' : lengthMs >= hourMs ? 'hour' : 'minute';
  const count = lengthMs / { day: dayMs, hour: hourMs, minute: minuteMs }[unit];
  return count === 1 ? `per ${unit}` : `per ${count} ${unit}s`;
}

function getChartProps<Row extends Interval>(
  intervals: readonly Row[],
  lengthMs: number,
  getValue: (row: Row) => number | undefined,
) {
  const ticks = getNumberTicks(Math.max(...intervals.map((row) => getValue(row) ?? 0)));
  const format = (at: unknown) => formatInterval(String(at), lengthMs);
  return {
    h: 160,
    dataKey: 'at',
    gridAxis: 'x',
    tickLine: 'none',
    strokeDasharray: '0',
    xAxisProps: {
      ticks: getTimeTicks(intervals, lengthMs),
      interval: 'equidistantPreserveStart',
      minTickGap: 8,
      height: 20,
      tickFormatter: format,
      padding: { left: 12, right: 20 },
    },
    yAxisProps: {
      ticks,
      domain: [0, ticks.at(-1) ?? 1],
      width: 44,
      interval: 0,
      tick: { fontSize: 12, fill: 'currentColor' },
    },
    tooltipProps: { labelFormatter: format },
    valueFormatter: (value: number) => value.toLocaleString('en'),
  } as const;
}

type Series = { name: string; color: string };
const callSeries: Series[] = [
  { name: 'OK', color: 'var(--th-accent)' },
  { name: 'Failed', color: 'var(--th-bad)' },
];
const durationSeries: Series[] = [
  { name: 'p50', color: 'var(--th-control)' },
  { name: 'p95', color: 'var(--th-accent)' },
];

type Counts = Interval & { calls: number; errors: number };

/** Chart of calls and errors over time. */
function CallsChart({ counts, lengthMs }: { counts: readonly Counts[]; lengthMs: number }) {
  const formatSum = (name: 'calls' | 'errors') =>
    counts.reduce((sum, count) => sum + count[name], 0).toLocaleString('en');
  return (
    <ChartCard
      title={`Calls ${formatRate(lengthMs)}`}
      text={`${formatSum('calls')} total, ${formatSum('errors')} failed`}
      series={callSeries}
    >
      <BarChart
        {...getChartProps(counts, lengthMs, ({ calls }) => calls)}
        data={counts.map(({ at, calls, errors }) => ({ at, OK: calls - errors, Failed: errors }))}
        type="stacked"
        series={callSeries}
      />
    </ChartCard>
  );
}

/** Chart of calls per day, including days without calls. */
export function DaysChart({ usage }: { usage: Usage }) {
  const byDay = new Map(usage.by_day.map((sum) => [sum.day, sum]));
  const from = Date.parse(usage.from);
  const days = Array.from({ length: (Date.parse(usage.to) - from) / dayMs }, (_, index) => {
    const at = new Date(from + index * dayMs).toISOString();
    const { calls = 0, errors = 0 } = byDay.get(at.slice(0, 10)) ?? {};
    return { at, calls, errors };
  });
  return <CallsChart counts={days} lengthMs={dayMs} />;
}

function Charts({ statistics: { buckets, bucket_ms, by_tool }, period }: { statistics: Statistics; period: Period }) {
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
      <CallsChart counts={buckets} lengthMs={bucket_ms} />
      <ChartCard title="Duration, ms" text="Median (p50) and 95th percentile (p95)" series={durationSeries}>
        <LineChart
          {...getChartProps(buckets, bucket_ms, ({ p95_ms }) => p95_ms)}
          data={buckets.map(({ at, p50_ms, p95_ms }) => ({ at, p50: p50_ms ?? null, p95: p95_ms ?? null }))}
          curveType="linear"
          connectNulls={false}
          dotProps={{ r: 2 }}
          series={durationSeries}
        />
      </ChartCard>
      {by_tool.length > 0 && (
        <Box style={{ gridColumn: '1 / -1' }}>
          <Collapsible label="By tool">
            <div className="th-card">
              <StatisticsTable label="Calls by tool" rows={by_tool} period={period} />
            </div>
          </Collapsible>
        </Box>
      )}
    </SimpleGrid>
  );
}

type CardProps = { title: string; text: string; series: readonly Series[]; children: ReactNode };

function ChartCard({ title, text, series, children }: CardProps) {
  return (
    // A chart is first drawn with a default width, which must not widen the page on a phone.
    <Box
      className="th-card th-chart"
      p="md"
      component="section"
      aria-label={`${title}: ${text}`}
      miw={0}
      style={{ overflowX: 'clip' }}
    >
      <Group gap="xs" mb="sm" align="baseline">
        <Text fw={500}>{title}</Text>
        <Text size="xs" c="dimmed" flex={1}>
          {text}
        </Text>
        {series.map(({ name, color }) => (
          <Text key={name} size="xs" c="dimmed">
            <span className="th-dot" style={{ background: color }} /> {name}
          </Text>
        ))}
      </Group>
      {children}
    </Box>
  );
}
