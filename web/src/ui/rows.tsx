import { Group, VisuallyHidden } from '@mantine/core';
import type { MouseEvent, ReactNode } from 'react';

export type Column<Row> = {
  label: string;
  cell: (row: Row) => ReactNode;
  /** Aligned to the right, like numbers and actions. */
  end?: boolean;
  /** Whether the label is only for screen readers. */
  quiet?: boolean;
};

type Props<Row> = {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  /** What can be done with a row, at its end. */
  actions?: false | ((row: Row) => ReactNode);
  onOpen?: (row: Row) => void;
};

/** A table that becomes a list of cards where the window is narrow. */
export function Rows<Row>({ label, columns: given, rows, keyOf, actions = false, onOpen }: Props<Row>) {
  const columns: readonly Column<Row>[] = actions
    ? [
        ...given,
        {
          label: 'Actions',
          quiet: true,
          end: true,
          cell: (row) => (
            <Group gap={6} justify="flex-end" wrap="nowrap">
              {actions(row)}
            </Group>
          ),
        },
      ]
    : given;
  return (
    <table className="th-rows" aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.label} scope="col" data-end={column.end || undefined}>
              {column.quiet ? <VisuallyHidden>{column.label}</VisuallyHidden> : column.label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr
            key={keyOf(row)}
            data-link={onOpen ? true : undefined}
            onClick={onOpen && outsideOfLinks(() => onOpen(row))}
          >
            {columns.map((column, index) => (
              <td
                key={column.label}
                data-label={column.quiet ? '' : column.label}
                data-first={index === 0 || undefined}
                data-end={column.end || undefined}
              >
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A row opens with a click anywhere but on the links and buttons in it. */
function outsideOfLinks(open: () => void) {
  return ({ target }: MouseEvent) => {
    if (!(target instanceof Element && target.closest('a, button'))) open();
  };
}
