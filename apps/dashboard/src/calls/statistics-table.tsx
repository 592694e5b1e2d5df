import { useQuery } from '@tanstack/react-query';
import { api, orIfNotFound } from '../api.ts';
import type { Statistics } from '../api-types.ts';
import { queryKeys } from '../query-keys.ts';
import { type Column, Count, Rows } from '../ui/rows.tsx';
import { TextLink } from '../ui/text/text-link.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { type CallFilter, getIntervals, type Period, toCallQuery } from './call-filter.ts';

/**
 * Fetches call statistics for the workspace, a server, or a tool: in intervals, or for the whole period. Null if the
 * service does not collect them.
 */
export function useStatistics(filter: CallFilter, { hasIntervals }: { hasIntervals: boolean }) {
  const { server, tool, period } = filter;
  return useQuery({
    queryKey: queryKeys.statistics({ server, tool, period, hasIntervals }),
    queryFn: ({ signal }) => {
      const { slug, since } = toCallQuery(filter);
      const intervals = hasIntervals ? getIntervals(period, since) : { since, buckets: 1 };
      return orIfNotFound<Statistics | null>(api('getCallStatistics', { slug, tool, ...intervals }, { signal }), null);
    },
    refetchInterval: 30_000,
  });
}

export function formatMs(ms: number | undefined): string {
  if (ms === undefined) return '–';
  return ms < 10_000 ? `${ms.toLocaleString('en')} ms` : `${(ms / 1000).toFixed(0)} s`;
}

type Row = Omit<Statistics['by_tool'][number], 'tool'> & { tool?: string };

type Props = { label: string; rows: readonly Row[]; period: Period };

/** Table of servers or tools, most called first, with links to their calls. */
export function StatisticsTable({ label, rows, period }: Props) {
  const hasTools = rows[0]?.tool !== undefined;
  const isSingleServer = rows.every(({ slug }) => slug === rows[0]?.slug);
  const renderCount = (row: Row, value: number, extraParams: { outcome?: string }) => {
    const { slug: server, tool } = row;
    const search = new URLSearchParams({ server, ...(tool !== undefined && { tool }), ...extraParams, period });
    if (value === 0) return <Count value={0} />;
    return <TextLink to={`/calls?${search}`}>{value.toLocaleString('en')}</TextLink>;
  };
  const columns: Column<Row>[] = [
    {
      label: hasTools ? 'Tool' : 'Server',
      cell: ({ slug, tool }) => (
        <TextLink
          to={tool === undefined ? `/servers/${slug}` : `/servers/${slug}/tools?tool=${encodeURIComponent(tool)}`}
          className="th-mono"
        >
          {hasTools && !isSingleServer && `${slug} / `}
          {toVisible(tool ?? slug)}
        </TextLink>
      ),
    },
    { label: 'Calls', narrow: 'end', isEndAligned: true, cell: (row) => renderCount(row, row.calls, {}) },
    { label: 'Failed', isEndAligned: true, cell: (row) => renderCount(row, row.errors, { outcome: 'failed' }) },
    { label: 'p50, ms', narrow: 'hidden', isEndAligned: true, cell: ({ p50_ms }) => <Count value={p50_ms} /> },
    { label: 'p95, ms', isEndAligned: true, cell: ({ p95_ms }) => <Count value={p95_ms} /> },
  ];
  return <Rows label={label} columns={columns} rows={rows} getKey={({ slug, tool }) => `${slug}/${tool}`} />;
}
