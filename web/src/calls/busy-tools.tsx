import { Box, Text } from '@mantine/core';
import type { Statistics } from '../answers.ts';
import { Folded } from '../ui/folded.tsx';
import { type Column, Rows } from '../ui/rows.tsx';
import { visible } from '../ui/text/visible.ts';

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
  { label: 'Errors', end: true, cell: ({ errors }) => errors.toLocaleString('en') },
  { label: 'p50', end: true, cell: ({ p50_ms }) => (p50_ms === undefined ? '–' : `${p50_ms} ms`) },
  { label: 'p95', end: true, cell: ({ p95_ms }) => (p95_ms === undefined ? '–' : `${p95_ms} ms`) },
];

/** The same numbers tool by tool, most called first. */
export function BusyTools({ rows }: { rows: readonly Row[] }) {
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
