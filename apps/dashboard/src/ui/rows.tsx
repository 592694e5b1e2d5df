import { Group, Text, VisuallyHidden } from '@mantine/core';
import type { MouseEvent, ReactNode } from 'react';

export type Column<Row> = {
  label: string;
  cell: (row: Row) => ReactNode;
  /** True for numbers and actions, which are right-aligned. */
  isEndAligned?: boolean;
  /** True if the label is only for screen readers. */
  isLabelHidden?: boolean;
};

type Props<Row> = {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  getKey: (row: Row) => string;
  /** Actions at the end of a row. */
  actions?: false | ((row: Row) => ReactNode);
  onOpen?: (row: Row) => void;
};

/** Table that becomes a list of cards in a narrow window. */
export function Rows<Row>({ label, columns, rows, getKey, onOpen, actions }: Props<Row>) {
  const allColumns = actions ? [...columns, createActionsColumn(actions)] : columns;
  return (
    <table className="th-rows" aria-label={label}>
      <thead>
        <tr>
          {allColumns.map((column) => (
            <th key={column.label} scope="col" data-end={column.isEndAligned || undefined}>
              {column.isLabelHidden ? <VisuallyHidden>{column.label}</VisuallyHidden> : column.label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={getKey(row)} data-link={onOpen && true} onClick={onOpen && ignoreLinks(() => onOpen(row))}>
            {allColumns.map(({ label: name, isLabelHidden, isEndAligned, cell }, index) => (
              <td
                key={name}
                data-label={isLabelHidden || index === 0 ? undefined : name}
                data-end={isEndAligned || undefined}
              >
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Returns a click handler that ignores links, buttons, and cells with inputs in the row. */
export function ignoreLinks(open: () => void) {
  return ({ target }: MouseEvent) => {
    if (!(target instanceof Element && target.closest('a, button, td:has(input)'))) open();
  };
}

function createActionsColumn<Row>(actions: (row: Row) => ReactNode): Column<Row> {
  const cell = (row: Row) => (
    <Group gap={6} justify="flex-end" wrap="nowrap">
      {actions(row)}
    </Group>
  );
  return { label: 'Actions', isLabelHidden: true, isEndAligned: true, cell };
}

/** Name in the first cell of a row, with details below. */
export function RowName({ name, children }: { name: ReactNode; children?: ReactNode }) {
  return (
    <div>
      <Text fw={600} size="sm">
        {name}
      </Text>
      <Text size="xs" c="dimmed" component="div">
        {children}
      </Text>
    </div>
  );
}
