import { ActionIcon, Menu, Text, VisuallyHidden } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import { Children, Fragment, isValidElement, type MouseEvent, type ReactNode, useId } from 'react';
import { toVisible } from './text/visible.ts';

export type Column<Row> = {
  label: string;
  cell: (row: Row) => ReactNode;
  /** True for numbers, which are right-aligned. */
  isEndAligned?: boolean;
  /** Place in a narrow window: on the first line, or on the second, where numbers have their label ("Calls 12"). */
  narrow?: 'title' | 'end' | 'fact' | 'labeled' | 'hidden';
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

/** Table whose rows have two lines in a narrow window: the first cell and the outcome, then the other facts. */
export function Rows<Row>({ label, columns, rows, getKey, getGroup, onOpen, actions }: Props<Row>) {
  const id = useId();
  return (
    <table className="th-rows" aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.label} scope="col" data-end={column.isEndAligned || undefined}>
              {column.label}
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
              {columns.map(({ label: name, isEndAligned, cell, ...column }, index) => (
                <td
                  key={name}
                  {...(index === 0 && { id: `${id}${rowIndex}` })}
                  data-label={name}
                  data-narrow={column.narrow ?? (index === 0 ? 'title' : isEndAligned ? 'labeled' : 'fact')}
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
      <Text fw={500} inherit className="th-row-name">
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

/** Names on one line. The tooltip has those that do not fit. */
export function Names({ list, empty }: { list: readonly string[]; empty: string }) {
  const text = toVisible(list.join(', '));
  if (text === '') return empty;
  return (
    <Text inherit lineClamp={1} title={text}>
      {text}
    </Text>
  );
}

/** Number in a table. Zero is a muted dash, so that the others stand out. */
export function Count({ value }: { value: number | undefined }) {
  return value ? value.toLocaleString('en') : <Dash />;
}

/** Dash for an absent value, which a narrow window omits. */
export function Dash() {
  return (
    <Text span inherit c="dimmed" className="th-none">
      –
    </Text>
  );
}
