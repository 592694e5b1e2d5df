import { ActionIcon, Menu, Text, VisuallyHidden } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import { Children, Fragment, isValidElement, type MouseEvent, type ReactNode, useId } from 'react';

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
  /** Heading of a row, shown above the first row of each group. */
  getGroup?: ((row: Row) => string) | undefined;
  /** `RowButton`s in the menu at the end of a row. */
  actions?: false | ((row: Row) => ReactNode);
  onOpen?: (row: Row) => void;
};

/** Table that becomes a list of cards in a narrow window. */
export function Rows<Row>({ label, columns, rows, getKey, getGroup, onOpen, actions }: Props<Row>) {
  const id = useId();
  return (
    <table className="th-rows" aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.label} scope="col" data-end={column.isEndAligned || undefined}>
              {column.isLabelHidden ? <VisuallyHidden>{column.label}</VisuallyHidden> : column.label}
            </th>
          ))}
          {actions && (
            <th scope="col">
              <VisuallyHidden>Actions</VisuallyHidden>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, rowIndex) => (
          <Fragment key={getKey(row)}>
            {getGroup && (rowIndex === 0 || getGroup(row) !== getGroup(rows[rowIndex - 1] as Row)) && (
              <tr>
                <th scope="rowgroup" colSpan={columns.length}>
                  {getGroup(row)}
                </th>
              </tr>
            )}
            <tr data-link={onOpen && true} onClick={onOpen && ignoreLinks(() => onOpen(row))}>
              {columns.map(({ label: name, isLabelHidden, isEndAligned, cell }, index) => (
                <td
                  key={name}
                  {...(index === 0 && { id: `${id}${rowIndex}` })}
                  data-label={isLabelHidden || index === 0 ? undefined : name}
                  data-end={isEndAligned || undefined}
                >
                  {cell(row)}
                </td>
              ))}
              {actions && (
                <td className="th-row-menu">
                  <RowMenu nameId={`${id}${rowIndex}`}>{actions(row)}</RowMenu>
                </td>
              )}
            </tr>
          </Fragment>
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

/** Menu of a row, named by the first cell. Renders nothing without an action. */
function RowMenu({ nameId, children }: { nameId: string; children: ReactNode }) {
  const actions =
    isValidElement<{ children: ReactNode }>(children) && children.type === Fragment
      ? children.props.children
      : children;
  if (Children.toArray(actions).length === 0) return null;
  return (
    <Menu position="bottom-end" id={`${nameId}menu`}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label="Actions" aria-labelledby={`${nameId}menu ${nameId}`}>
          <IconDots size={16} stroke={1.5} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>{children}</Menu.Dropdown>
    </Menu>
  );
}

/** Name in the first cell of a row, with details below. */
export function RowName({ name, children }: { name: ReactNode; children?: ReactNode }) {
  return (
    <div>
      <Text fw={500} inherit>
        {name}
      </Text>
      {children && <SecondLine>{children}</SecondLine>}
    </div>
  );
}

/** Muted line below the first line of a cell. */
export function SecondLine({ children }: { children: ReactNode }) {
  return <div className="th-second-line">{children}</div>;
}

/** Number in a table. Zero is a muted dash, so that the others stand out. */
export function Count({ value }: { value: number | undefined }) {
  if (value) return value.toLocaleString('en');
  return (
    <Text span inherit c="dimmed">
      –
    </Text>
  );
}
