import { Anchor, Group, SegmentedControl, SimpleGrid, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import type { Statistics } from '../answers.ts';
import { ApiProblem, api } from '../api.ts';
import { type CallFilter, type Period, queryOf } from '../calls/call-filter.ts';
import { queryKeys } from '../query-keys.ts';
import { type Column, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { visible } from '../ui/text/visible.ts';

/** The calls of a time, counted: of one server or of the workspace. Null where the service does not count them. */
export function useCounted(filter: CallFilter) {
  const { server, period } = filter;
  return useQuery({
    queryKey: queryKeys.statistics({ server, period, buckets: 1 }),
    queryFn: async ({ signal }) => {
      const { slug, since } = queryOf(filter);
      try {
        return await api('getCallStatistics', { slug, since, buckets: 1 }, { signal });
      } catch (error) {
        if (error instanceof ApiProblem && error.status === 404) return null;
        throw error;
      }
    },
    refetchInterval: 30_000,
  });
}

const choices: { value: Period; label: string }[] = [
  { value: '24h', label: '24 hours' },
  { value: '7d', label: '7 days' },
];

export function PeriodSwitch({ period, onChange }: { period: Period; onChange: (period: string) => void }) {
  return <SegmentedControl size="xs" aria-label="Time" data={choices} value={period} onChange={onChange} />;
}

type Figure = { label: string; value: string; text?: string | undefined; isBad?: boolean };

/** Calls and failures, and how long calls took where they are of one server. */
export function Figures({ counted, isOfServer }: { counted: Statistics; isOfServer: boolean }) {
  const sum = (name: 'calls' | 'errors') => counted.buckets.reduce((all, bucket) => all + bucket[name], 0);
  const [calls, errors] = [sum('calls'), sum('errors')];
  const { p50_ms, p95_ms } = counted.by_server[0] ?? {};
  const figures: Figure[] = [
    { label: 'Calls', value: calls.toLocaleString('en') },
    {
      label: 'Failed',
      value: errors.toLocaleString('en'),
      text: errors > 0 ? `${((errors / calls) * 100).toFixed(errors * 100 < calls ? 1 : 0)} %` : undefined,
      isBad: errors > 0,
    },
    ...(isOfServer
      ? [
          { label: 'Half took at most', value: timeText(p50_ms), text: 'p50' },
          { label: '95 of 100 took at most', value: timeText(p95_ms), text: 'p95' },
        ]
      : [
          { label: 'Servers called', value: counted.by_server.length.toLocaleString('en') },
          { label: 'Tools called', value: counted.by_tool.length.toLocaleString('en') },
        ]),
  ];
  return (
    <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="md" component="dl" m={0}>
      {figures.map(({ label, value, text, isBad }) => (
        <div key={label} className="th-card th-figure">
          <dt>{label}</dt>
          <dd data-bad={isBad || undefined}>
            {value} <small>{text}</small>
          </dd>
        </div>
      ))}
    </SimpleGrid>
  );
}

function timeText(ms: number | undefined): string {
  return ms === undefined ? '–' : ms < 10_000 ? `${ms.toLocaleString('en')} ms` : `${(ms / 1000).toFixed(0)} s`;
}

type Counted = Statistics['by_tool'][number];
/** The rows of a home. */
const mostRows = 8;

/** What is called most: the tools of one server, or the servers. */
export function Busiest({ counted, server, period }: { counted: Statistics; server?: string; period: Period }) {
  const rows: (Omit<Counted, 'tool'> & { tool?: string })[] = server ? counted.by_tool : counted.by_server;
  const callsOf = ({ slug, tool }: { slug: string; tool?: string }, more: { outcome?: string }) =>
    `/calls?${new URLSearchParams({ server: slug, ...(tool !== undefined && { tool }), ...more, period })}`;
  const columns: Column<(typeof rows)[number]>[] = [
    {
      label: server ? 'Tool' : 'Server',
      cell: ({ slug, tool }) => (
        <Anchor
          component={Link}
          to={tool === undefined ? `/servers/${slug}` : `/servers/${slug}/tools?tool=${encodeURIComponent(tool)}`}
          className="th-mono"
          size="sm"
        >
          {visible(tool ?? slug)}
        </Anchor>
      ),
    },
    {
      label: 'Calls',
      end: true,
      cell: (row) => (
        <Anchor component={Link} to={callsOf(row, {})} size="sm" c="var(--mantine-color-text)">
          {row.calls.toLocaleString('en')}
        </Anchor>
      ),
    },
    {
      label: 'Failed',
      end: true,
      cell: (row) =>
        row.errors === 0 ? (
          '0'
        ) : (
          <Anchor component={Link} to={callsOf(row, { outcome: 'failed' })} size="sm" c="var(--th-bad)">
            {row.errors.toLocaleString('en')}
          </Anchor>
        ),
    },
    { label: 'p50', end: true, cell: ({ p50_ms }) => timeText(p50_ms) },
    { label: 'p95', end: true, cell: ({ p95_ms }) => timeText(p95_ms) },
  ];
  if (rows.length === 0) return null;
  return (
    <Section title={server ? 'Most called tools' : 'Busiest servers'} flush>
      <Rows
        label={server ? 'Most called tools' : 'Busiest servers'}
        columns={columns}
        rows={rows.slice(0, mostRows)}
        keyOf={({ slug, tool }) => `${slug}/${tool}`}
      />
      {rows.length > mostRows && (
        <Group p="sm">
          <Text size="xs" c="dimmed">
            The first {mostRows} of {rows.length === 100 ? 'more than 100' : rows.length}.
          </Text>
        </Group>
      )}
    </Section>
  );
}
