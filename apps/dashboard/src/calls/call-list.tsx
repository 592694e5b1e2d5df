import { UnstyledButton } from '@mantine/core';
import { lazy, Suspense, useReducer } from 'react';
import type { Call } from '../api-types.ts';
import { type Column, RowName, Rows } from '../ui/rows.tsx';
import { toVisible } from '../ui/text/visible.ts';
import type { useCallFilter } from './call-filter.ts';

// Loaded when a call is first opened, to keep the first page small.
const CallDrawer = lazy(async () => ({ default: (await import('./call-drawer.tsx')).CallDrawer }));

type Props<Row> = {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  /** Heading of a row, shown above the first row of each group. */
  getGroup?: (row: Row) => string;
  /** True if all calls belong to one server. */
  isSingleServer: boolean;
  callFilter: Pick<ReturnType<typeof useCallFilter>, 'openCallId' | 'change'>;
};

/** List of calls and the drawer of the selected call. */
export function CallList<Row extends Call>({ label, rows, columns, getGroup, isSingleServer, callFilter }: Props<Row>) {
  const [hasOpened, markOpened] = useReducer(() => true, false);
  if (callFilter.openCallId !== undefined && !hasOpened) markOpened();
  const open = (id: string | undefined) => callFilter.change('call', id);
  const tool: Column<Row> = {
    label: 'Tool',
    cell: ({ id, tool: name, server, view }) => (
      <RowName
        name={
          <UnstyledButton className="th-mono" fw={500} onClick={() => open(id)}>
            {toVisible(name)}
          </UnstyledButton>
        }
      >
        {isSingleServer ? (
          view && `view ${toVisible(view)}`
        ) : (
          <span className="th-mono">{toVisible(view ? `${server}/${view}` : server)}</span>
        )}
      </RowName>
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
          getGroup={getGroup}
          onOpen={({ id }) => open(id)}
        />
      )}
      {hasOpened && (
        <Suspense>
          <CallDrawer
            id={callFilter.openCallId}
            listedCall={rows.find(({ id }) => id === callFilter.openCallId)}
            onClose={() => open(undefined)}
          />
        </Suspense>
      )}
    </>
  );
}
