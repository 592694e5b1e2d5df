import { Button, type ButtonProps, Group, Text, VisuallyHidden } from '@mantine/core';
import type { MouseEvent, ReactNode } from 'react';
import { Link } from 'react-router';

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
  onOpen?: (row: Row) => void;
  /** Buttons at the end of a row. */
  actions?: false | ((row: Row) => ReactNode) | undefined;
};

/** A table that becomes a list of cards where the window is narrow. */
export function Rows<Row>({ label, columns, rows, keyOf, onOpen, actions }: Props<Row>) {
  const all = actions ? [...columns, actionsColumn(actions)] : columns;
  return (
    <table className="th-rows" aria-label={label}>
      <thead>
        <tr>
          {all.map((column) => (
            <th key={column.label} scope="col" data-end={column.end || undefined}>
              {column.quiet ? <VisuallyHidden>{column.label}</VisuallyHidden> : column.label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} data-link={onOpen && true} onClick={onOpen && outsideOfLinks(() => onOpen(row))}>
            {all.map(({ label: name, quiet, end, cell }, index) => (
              <td
                key={name}
                data-label={quiet ? '' : name}
                data-first={index === 0 || undefined}
                data-end={end || undefined}
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

/** A row opens with a click anywhere but on the links and buttons in it. */
function outsideOfLinks(open: () => void) {
  return ({ target }: MouseEvent) => {
    if (!(target instanceof Element && target.closest('a, button'))) open();
  };
}

function actionsColumn<Row>(actions: (row: Row) => ReactNode): Column<Row> {
  const cell = (row: Row) => (
    <Group gap={6} justify="flex-end" wrap="nowrap">
      {actions(row)}
    </Group>
  );
  return { label: 'Actions', quiet: true, end: true, cell };
}

type ActionProps = ButtonProps & { label: string; of?: string; onClick?: () => void; to?: string };

/** A button or link at the end of a row. `of` says of which row, for screen readers. */
export function RowAction({ label, of = '', to, ...rest }: ActionProps) {
  const link = to !== undefined && { renderRoot: (props: object) => <Link {...props} to={to} /> };
  return (
    <Button size="compact-sm" variant="default" aria-label={`${label} ${of}`.trim()} {...rest} {...link}>
      {label}
    </Button>
  );
}

/** A name in the first cell of a row, with what distinguishes it below. */
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
