import { Checkbox, Group, Text, TextInput, UnstyledButton, VisuallyHidden } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import { api } from '../../../api.ts';
import type { ToolFigures } from '../../../api-types.ts';
import { queryKeys } from '../../../query-keys.ts';
import { asList, asText, getTools } from '../../config.ts';
import { useEditor, useEditorState } from '../model/editor-context.ts';
import { SelectedTools } from './selected-tools.tsx';
import { ToolRow } from './tool-row.tsx';

/** Height of every row, in px. */
const rowHeight = 52;
/** Minimum number of tools for which the table has a filter. */
const minFilterCount = 9;

type Figure = 'tokens' | 'calls' | 'errors';

const figureColumns: readonly { name: Figure; label: string; tooltip: string }[] = [
  { name: 'tokens', label: 'Tokens', tooltip: 'Estimated tokens of its definition in a conversation' },
  { name: 'calls', label: 'Calls, 24 h', tooltip: 'Calls in the last 24 hours' },
  { name: 'errors', label: 'Failed, 24 h', tooltip: 'Failed calls in the last 24 hours' },
];

type Props = { count: number; open: number | undefined; onMove: (from: number, to: number) => void };

/** Virtualized table of tools. Only the visible rows are rendered. */
export function ToolTable({ count, open, onMove }: Props) {
  const { isReadOnly } = useEditor();
  const [filter, setFilter] = useState('');
  const [sort, setSort] = useState<Figure>();
  const figures = useFigures();
  const indexes = useVisibleIndexes(filter, sort, figures);
  const [selected, select] = useSelection();
  const shownCount = indexes?.length ?? count;
  const scrollRef = useRef<HTMLDivElement>(null);
  const draggedIndex = useRef<number>(undefined);
  const rows = useVirtualizer({
    count: shownCount,
    getScrollElement: () => scrollRef.current,
    estimateSize: () => rowHeight,
    overscan: 4,
    // Accounts for the sticky header, which is at most as tall as a row.
    scrollPaddingEnd: rowHeight,
    useFlushSync: false,
  });
  const openRow = indexes && open !== undefined ? indexes.indexOf(open) : (open ?? -1);
  useEffect(() => {
    if (openRow >= 0) rows.scrollToIndex(openRow);
  }, [rows, openRow]);
  const visibleRows = rows.getVirtualItems();
  const toggleSelected = (index: number, isOn: boolean) =>
    select([...selected].filter((selectedIndex) => selectedIndex !== index).concat(isOn ? index : []));
  return (
    <div>
      {count >= minFilterCount && <Filter filter={filter} shownCount={shownCount} count={count} onChange={setFilter} />}
      {selected.size > 0 && <SelectedTools indexes={selected} onClear={() => select([])} />}
      <div ref={scrollRef} className="th-card th-tools">
        <table aria-label="Tools" aria-rowcount={shownCount + 1} data-selects={!isReadOnly || undefined}>
          <Head
            indexes={indexes ?? Array.from({ length: count }, (_, index) => index)}
            selected={selected}
            onSelect={select}
            sort={sort}
            onSort={setSort}
          />
          <tbody>
            <Spacer height={visibleRows[0]?.start ?? 0} />
            {visibleRows.map(({ index: row }) => {
              const index = indexes?.[row] ?? row;
              const drag = () => {
                draggedIndex.current = index;
              };
              return (
                <ToolRow
                  key={index}
                  index={index}
                  row={row}
                  isOpen={index === open}
                  figures={figures}
                  isSelected={selected.has(index)}
                  onSelect={(isOn) => toggleSelected(index, isOn)}
                  onDrag={sort === undefined ? drag : undefined}
                  onDrop={() => draggedIndex.current !== undefined && onMove(draggedIndex.current, index)}
                />
              );
            })}
            <Spacer height={rows.getTotalSize() - (visibleRows.at(-1)?.end ?? 0)} />
          </tbody>
        </table>
      </div>
    </div>
  );
}

/** Spacer for rows that are not visible. Its cell spans no columns, because a column may be hidden. */
function Spacer({ height }: { height: number }) {
  if (height <= 0) return null;
  return (
    <tr aria-hidden style={{ height }}>
      <td />
    </tr>
  );
}

const noSelection: ReadonlySet<number> = new Set();

/** Returns the indexes of the selected tools. The selection is cleared when the list changes. */
function useSelection() {
  const listRevision = useEditorState((state) => state.listRevision);
  const [selection, setSelection] = useState({ listRevision, indexes: noSelection });
  const select = (next: readonly number[]) => setSelection({ listRevision, indexes: new Set(next) });
  return [selection.listRevision === listRevision ? selection.indexes : noSelection, select] as const;
}

type HeadProps = {
  /** Indexes of the shown tools. */
  indexes: readonly number[];
  selected: ReadonlySet<number>;
  onSelect: (indexes: readonly number[]) => void;
  sort: Figure | undefined;
  onSort: (sort: Figure | undefined) => void;
};

function Head({ indexes, selected, onSelect, sort, onSort }: HeadProps) {
  const { isReadOnly } = useEditor();
  const isAllSelected = indexes.length > 0 && indexes.every((index) => selected.has(index));
  return (
    <thead>
      <tr aria-rowindex={1}>
        {!isReadOnly && (
          <th scope="col" className="th-tools-select">
            <Checkbox
              size="xs"
              aria-label="Select all shown tools"
              checked={isAllSelected}
              indeterminate={!isAllSelected && selected.size > 0}
              onChange={() => onSelect(isAllSelected ? [] : indexes)}
            />
          </th>
        )}
        <th scope="col">Name</th>
        {figureColumns.map(({ name, label, tooltip }) => (
          <th
            key={name}
            scope="col"
            data-figure={name}
            aria-sort={sort === name ? 'descending' : 'none'}
            title={tooltip}
          >
            <UnstyledButton onClick={() => onSort(sort === name ? undefined : name)}>
              {label}
              {sort === name && ' ↓'}
            </UnstyledButton>
          </th>
        ))}
        <th scope="col" className="th-tools-mark">
          <VisuallyHidden>Problems</VisuallyHidden>
        </th>
        <th scope="col" className="th-tools-on">
          On
        </th>
      </tr>
    </thead>
  );
}

type FilterProps = { filter: string; shownCount: number; count: number; onChange: (filter: string) => void };

function Filter({ filter, shownCount, count, onChange }: FilterProps) {
  const input = useRef<HTMLInputElement>(null);
  const matchText = shownCount === 0 ? 'No matching tools' : `${shownCount} of ${count} tools`;
  useHotkeys([['/', () => input.current?.focus()]]);
  return (
    <Group gap="sm" mb="xs">
      <TextInput
        ref={input}
        aria-label="Filter tools"
        aria-keyshortcuts="/"
        placeholder="Name, method, path, tag ( / )"
        leftSection={<IconSearch size={15} />}
        flex="1 1 14rem"
        value={filter}
        onChange={(event) => onChange(event.currentTarget.value)}
        spellCheck={false}
      />
      <Text c="dimmed" role="status">
        {shownCount === count ? `${count} tools` : matchText}
      </Text>
    </Group>
  );
}

type Figures = ReadonlyMap<string, ToolFigures>;

const noFigures: Figures = new Map();
const toFiguresByName = ({ tools }: { tools: readonly ToolFigures[] }): Figures =>
  new Map(tools.map((figures) => [figures.tool, figures]));

/** Fetches tokens and the last 24 hours' calls of the stored tools. */
function useFigures(): Figures {
  const { isNew } = useEditor();
  const slug = useEditorState(({ initial }) => asText(initial.slug));
  const { data = noFigures } = useQuery({
    queryKey: [...queryKeys.server(slug), 'figures'],
    queryFn: ({ signal }) => api('getToolActivity', { slug }, { signal }),
    select: toFiguresByName,
    enabled: !isNew,
    refetchInterval: 30_000,
  });
  return data;
}

/**
 * Returns the indexes of tools that contain every word of the filter, in descending order of a figure. Undefined means
 * all tools in their own order. A tool must stay visible while it is edited, so the result changes only with the filter,
 * the sort order, the figures, or the list.
 */
function useVisibleIndexes(filter: string, sort: Figure | undefined, figures: Figures): number[] | undefined {
  const { store } = useEditor();
  const listRevision = useEditorState((state) => state.listRevision);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `listRevision` signals when to read the tools again
  return useMemo(() => {
    const terms = filter.toLowerCase().split(/\s+/).filter(Boolean);
    if (terms.length === 0 && sort === undefined) return undefined;
    const tools = getTools(store.getState().config);
    const matching = tools.flatMap(({ name, method, url, description, tags }, index) => {
      const text = [name, method, url, description, ...asList(tags)].map(asText).join('\n').toLowerCase();
      return terms.every((term) => text.includes(term)) ? [index] : [];
    });
    if (sort === undefined) return matching;
    const getFigure = (index: number) => figures.get(asText(tools[index]?.name))?.[sort] ?? -1;
    return matching.sort((a, b) => getFigure(b) - getFigure(a) || a - b);
  }, [filter, sort, figures, listRevision, store]);
}
