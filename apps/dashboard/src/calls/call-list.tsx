import { Text, UnstyledButton } from '@mantine/core';
import { lazy, Suspense } from 'react';
import type { Call } from '../api-types.ts';
import { type Column, Rows } from '../ui/rows.tsx';
import { Hint } from '../ui/text/hint.tsx';
import { toVisible } from '../ui/text/visible.ts';
import type { useCallFilter } from './call-filter.ts';

// Lazy, to keep the first page small.
const CallDrawer = lazy(async () => ({ default: (await import('./call-drawer.tsx')).CallDrawer }));

type Props<Row> = {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  /** True if all calls belong to one server. */
  isSingleServer: boolean;
  callFilter: Pick<ReturnType<typeof useCallFilter>, 'openCallId' | 'change'>;
};

/** List of calls and the drawer of the selected call. */
export function CallList<Row extends Call>({ label, rows, columns, isSingleServer, callFilter }: Props<Row>) {
  const open = (id: string | undefined) => callFilter.change('call', id);
  const tool: Column<Row> = {
    label: 'Tool',
    cell: ({ id, tool: name, server, view }) => (
      <UnstyledButton display="block" onClick={() => open(id)}>
        <Text className="th-mono" fw={600}>
          {toVisible(name)}
        </Text>
        {!isSingleServer && <Hint size="xs">{toVisible(view === undefined ? server : `${server}/${view}`)}</Hint>}
        {isSingleServer && view !== undefined && <Hint size="xs">{`view ${toVisible(view)}`}</Hint>}
      </UnstyledButton>
    ),
  };
  return (
    <>
      {rows.length > 0 && (
        <Rows
          label={label}
          columns={[tool, ...columns]}
          rows={rows}
          getKey={({ id }) => id}
          onOpen={({ id }) => open(id)}
        />
      )}
      <Suspense>
        <CallDrawer
          id={callFilter.openCallId}
          listedCall={rows.find(({ id }) => id === callFilter.openCallId)}
          onClose={() => open(undefined)}
        />
      </Suspense>
    </>
  );
}
