import { useQuery } from '@tanstack/react-query';
import type { Statistics } from '../answers.ts';
import { ApiProblem, api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { type Column, Rows } from '../ui/rows.tsx';
import { TextLink } from '../ui/text/text-link.tsx';
import { visible } from '../ui/text/visible.ts';
import { type CallFilter, type Period, queryOf } from './call-filter.ts';

type Counting = Pick<CallFilter, 'server' | 'tool' | 'period'>;

/** Fetches call statistics for the workspace, a server, or a tool. Null if the service does not collect them. */
export function useCounted(filter: CallFilter, buckets: number) {
  const { server, tool, period }: Counting = filter;
  return useQuery({
    queryKey: queryKeys.statistics({ server, tool, period, buckets }),
    queryFn: async ({ signal }) => {
      const { slug, since } = queryOf(filter);
      try {
        return await api('getCallStatistics', { slug, tool, since, buckets }, { signal });
      } catch (error) {
        if (error instanceof ApiProblem && error.status === 404) return null;
        throw error;
      }
    },
    refetchInterval: 30_000,
  });
}

export function msText(ms: number | undefined): string {
  if (ms === undefined) return '–';
  return ms < 10_000 ? `${ms.toLocaleString('en')} ms` : `${(ms / 1000).toFixed(0)} s`;
}

type Row = Omit<Statistics['by_tool'][number], 'tool'> & { tool?: string };

type Props = { label: string; rows: readonly Row[]; period: Period };

/** Table of servers or tools, most called first, with links to their calls. */
export function CountedRows({ label, rows, period }: Props) {
  const isOfTools = rows[0]?.tool !== undefined;
  const isOfOne = rows.every(({ slug }) => slug === rows[0]?.slug);
  const count = (row: Row, value: number, color: string, more: { outcome?: string }) => {
    const { slug: server, tool } = row;
    const search = new URLSearchParams({ server, ...(tool !== undefined && { tool }), ...more, period });
    if (value === 0) return '0';
    return (
      <TextLink to={`/calls?${search}`} c={color}>
        {value.toLocaleString('en')}
      </TextLink>
    );
  };
  const columns: Column<Row>[] = [
    {
      label: isOfTools ? 'Tool' : 'Server',
      cell: ({ slug, tool }) => (
        <TextLink
          to={tool === undefined ? `/servers/${slug}` : `/servers/${slug}/tools?tool=${encodeURIComponent(tool)}`}
          className="th-mono"
        >
          {isOfTools && !isOfOne && `${slug} / `}
          {visible(tool ?? slug)}
        </TextLink>
      ),
    },
    { label: 'Calls', end: true, cell: (row) => count(row, row.calls, 'var(--mantine-color-text)', {}) },
    { label: 'Failed', end: true, cell: (row) => count(row, row.errors, 'var(--th-bad)', { outcome: 'failed' }) },
    { label: 'p50', end: true, cell: ({ p50_ms }) => msText(p50_ms) },
    { label: 'p95', end: true, cell: ({ p95_ms }) => msText(p95_ms) },
  ];
  return <Rows label={label} columns={columns} rows={rows} keyOf={({ slug, tool }) => `${slug}/${tool}`} />;
}
