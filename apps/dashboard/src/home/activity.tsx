import { Button, SegmentedControl, Stack, Text } from '@mantine/core';
import { IconPlugConnected } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getFailureGroup } from '@toolhost/errors/errors';
import { Link } from 'react-router';
import { api } from '../api.ts';
import type { Call, Statistics } from '../api-types.ts';
import { toCallQuery, useCallFilter } from '../calls/call-filter.ts';
import { failureGroups, Outcome } from '../calls/call-labels.tsx';
import { CallList } from '../calls/call-list.tsx';
import { formatMs, StatisticsTable, useStatistics } from '../calls/statistics-table.tsx';
import { queryKeys } from '../query-keys.ts';
import { type Column, Count } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Empty } from '../ui/states/empty.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { Hint } from '../ui/text/hint.tsx';
import { TextLink } from '../ui/text/text-link.tsx';
import { Time } from '../ui/text/time.tsx';
import { usePendingActions } from './needs-attention.tsx';

const periods = [
  { value: '24h', label: '24 hours' },
  { value: '7d', label: '7 days' },
];
/** Maximum rows of a table, and of the failures. */
const maxRows = 8;
const maxFailures = 5;
/** Maximum failed calls that are grouped by reason. Their records are the largest response of the first page. */
const maxFailedCalls = 50;

type Props = {
  /** Server to show; undefined for the whole workspace. */
  server?: string;
  /** Server to suggest if there were no calls. */
  newestSlug: string;
};

/** Call activity of a period: counts, failures, and the most called servers or tools. */
export function Activity({ server, newestSlug }: Props) {
  const callFilter = useCallFilter({ server, defaultPeriod: '7d' });
  const { period } = callFilter.filter;
  const statisticsQuery = useStatistics(callFilter.filter, { hasIntervals: false });
  const title = server ? 'Most-called tools' : 'Busiest servers';
  return (
    <Stack gap="md">
      <SegmentedControl
        aria-label="Time"
        data={periods}
        value={period}
        onChange={(next) => callFilter.change('period', next)}
        style={{ alignSelf: 'start' }}
      />
      <Loaded query={statisticsQuery}>
        {(statistics) =>
          statistics?.by_server.length ? (
            <>
              <Figures statistics={statistics} isSingleServer={server !== undefined} />
              <Failures callFilter={callFilter} isSingleServer={server !== undefined} />
              <Section title={title} isFlush>
                <StatisticsTable
                  label={title}
                  rows={(server ? statistics.by_tool : statistics.by_server).slice(0, maxRows)}
                  period={period}
                />
              </Section>
            </>
          ) : (
            <NoCalls slug={newestSlug} />
          )
        }
      </Loaded>
    </Stack>
  );
}

/** Figures of a period. Durations are shown for a single server only. */
function Figures({ statistics, isSingleServer }: { statistics: Statistics; isSingleServer: boolean }) {
  const { buckets, by_server, by_tool } = statistics;
  const sum = (name: 'calls' | 'errors') => buckets.reduce((total, bucket) => total + bucket[name], 0);
  const [calls, errors] = [sum('calls'), sum('errors')];
  const { p50_ms, p95_ms } = by_server[0] ?? {};
  const decimals = errors * 100 < calls ? 1 : 0;
  const percent = `${((errors / calls) * 100).toFixed(decimals)}%`;
  // The service returns at most 100 servers and tools.
  const formatCount = ({ length }: readonly unknown[]) => (length < 100 ? length : '100 or more');
  const figures: [label: string, value: number | string, note?: string][] = [
    ['Calls', calls],
    ['Failed', errors, errors > 0 ? percent : ''],
    isSingleServer ? ['Duration, p50', formatMs(p50_ms)] : ['Servers called', formatCount(by_server)],
    isSingleServer ? ['Duration, p95', formatMs(p95_ms)] : ['Tools called', formatCount(by_tool)],
  ];
  return (
    <dl className="th-figures">
      {figures.map(([label, value, note]) => {
        const [figure, unit = note] = value.toLocaleString('en').split(/ (.*)/);
        return (
          <div key={label}>
            <Text component="dt" size="xs" c="dimmed">
              {label}
            </Text>
            <dd className="th-figure">
              {figure}{' '}
              <Text span size="xs" c="dimmed">
                {unit}
              </Text>
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

/** Latest call among calls that failed for the same reason, with their count and the group of the failure. */
type Failure = Call & { count: number; group: string };

function groupFailures(calls: readonly Call[]): Failure[] {
  const callsByFailure = Map.groupBy(calls, ({ server, tool, outcome, upstream_status, reason }) =>
    JSON.stringify([server, tool, outcome, upstream_status, reason]),
  );
  const failures = [...callsByFailure.values()].flatMap((same) =>
    same.slice(0, 1).map((newest) => ({ ...newest, count: same.length })),
  );
  return Object.entries(failureGroups)
    .flatMap(([group, name]) =>
      failures
        .filter(({ outcome, upstream_status }) => getFailureGroup(outcome, upstream_status) === group)
        .map((failure) => ({ ...failure, group: name })),
    )
    .slice(0, maxFailures);
}

const failureColumns: Column<Failure>[] = [
  { label: 'Reason', narrow: 'end', cell: (call) => <Outcome call={call} /> },
  { label: 'Calls', isEndAligned: true, cell: ({ count }) => <Count value={count} /> },
  { label: 'Last', narrow: 'fact', isEndAligned: true, cell: ({ at }) => <Time at={at} /> },
];

type FailuresProps = { callFilter: ReturnType<typeof useCallFilter>; isSingleServer: boolean };

/** Failure reasons of the latest failed calls. */
function Failures({ callFilter, isSingleServer }: FailuresProps) {
  const { server, period } = callFilter.filter;
  const failedFilter = { server, period, outcome: 'failed' };
  const query = useQuery({
    queryKey: queryKeys.calls({ ...failedFilter, limit: maxFailedCalls }),
    queryFn: ({ signal }) => api('listCalls', { ...toCallQuery(failedFilter), limit: maxFailedCalls }, { signal }),
    refetchInterval: 15_000,
  });
  const pending = usePendingActions(server).data?.servers.filter(
    ({ missing_secrets: missing, moved_secrets: moved }) => missing.length + moved.length > 0,
  );
  /** A missing secret that was set since is no longer shown. */
  const isOpen = (call: Call) =>
    call.outcome !== 'secret_missing' || pending === undefined || pending.some(({ slug }) => slug === call.server);
  const search = new URLSearchParams({ ...(server && { server }), outcome: 'failed', period });
  return (
    <Section title="Failures" isFlush actions={<TextLink to={`/calls?${search}`}>All failed calls</TextLink>}>
      <Loaded query={query}>
        {({ calls }) => (
          <>
            {calls.every((call) => !isOpen(call)) && <Hint p="md">No open failures in this period.</Hint>}
            <CallList
              label="Failures"
              rows={groupFailures(calls.filter(isOpen))}
              columns={failureColumns}
              getGroup={({ group }) => group}
              isSingleServer={isSingleServer}
              callFilter={callFilter}
            />
          </>
        )}
      </Loaded>
    </Section>
  );
}

function NoCalls({ slug }: { slug: string }) {
  return (
    <div className="th-card">
      <Empty icon={<IconPlugConnected />} title="No calls in this period">
        <Button component={Link} to={`/servers/${slug}/connect`}>
          Connect a client to {slug}
        </Button>
      </Empty>
    </div>
  );
}
