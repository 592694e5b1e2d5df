import { Group, Text, TextInput, VisuallyHidden } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import type { FieldProblem } from '../../../answers.ts';
import { textOf, toolsOf } from '../../config.ts';
import { useEdited, useEditor, useFindings } from '../model/editor-context.ts';
import { goToField } from '../model/go-to-field.ts';
import { type Found, ToolRow } from './tool-row.tsx';

/** Height of a row in px, the same for all of them. */
const rowHeight = 42;
/** Tools from which on the table has a filter. */
const manyTools = 9;

type Props = {
  count: number;
  open: number | undefined;
  onClose: () => void;
  onMove: (from: number, to: number) => void;
};

/** The tools as a table, of which only the visible rows are on the page. */
export function ToolTable({ count, open, onClose, onMove }: Props) {
  const [filter, setFilter] = useState('');
  const indexes = useFiltered(filter);
  const shown = indexes?.length ?? count;
  const scroll = useRef<HTMLDivElement>(null);
  const dragged = useRef<number>(undefined);
  const found = useFoundByTool();
  const rows = useVirtualizer({
    count: shown,
    getScrollElement: () => scroll.current,
    estimateSize: () => rowHeight,
    overscan: 4,
    // The head of the table is above the rows, and no taller than one of them.
    scrollPaddingEnd: rowHeight,
    useFlushSync: false,
  });
  const place = open === undefined ? -1 : indexes ? indexes.indexOf(open) : open;
  useEffect(() => {
    if (place >= 0) rows.scrollToIndex(place);
  }, [rows, place]);
  const visibleRows = rows.getVirtualItems();
  const before = visibleRows[0]?.start ?? 0;
  const after = rows.getTotalSize() - (visibleRows.at(-1)?.end ?? 0);
  return (
    <div>
      {count >= manyTools && <Filter filter={filter} shown={shown} count={count} onChange={setFilter} />}
      <div ref={scroll} className="th-card th-tools">
        <table aria-label="Tools" aria-rowcount={shown + 1}>
          <thead>
            <tr aria-rowindex={1}>
              <th scope="col">Name</th>
              <th scope="col">Method</th>
              <th scope="col" data-wide>
                Path
              </th>
              <th scope="col">
                <VisuallyHidden>Problems</VisuallyHidden>
              </th>
              <th scope="col">On</th>
            </tr>
          </thead>
          <tbody>
            <Space height={before} />
            {visibleRows.map(({ index: row }) => {
              const index = indexes?.[row] ?? row;
              return (
                <ToolRow
                  key={index}
                  index={index}
                  row={row}
                  isOpen={index === open}
                  found={found.get(index)}
                  onToggle={() => (index === open ? onClose() : goToField(`tools[${index}]`))}
                  onDrag={() => {
                    dragged.current = index;
                  }}
                  onDrop={() => dragged.current !== undefined && onMove(dragged.current, index)}
                />
              );
            })}
            <Space height={after} />
          </tbody>
        </table>
      </div>
    </div>
  );
}

/** Stands for the rows that are not visible. Its cell spans no columns, because one of them may be hidden. */
function Space({ height }: { height: number }) {
  if (height <= 0) return null;
  return (
    <tr aria-hidden style={{ height }}>
      <td />
    </tr>
  );
}

type FilterProps = { filter: string; shown: number; count: number; onChange: (filter: string) => void };

function Filter({ filter, shown, count, onChange }: FilterProps) {
  return (
    <Group gap="sm" mb="xs">
      <TextInput
        aria-label="Filter the tools"
        placeholder="Name, path, description"
        leftSection={<IconSearch size={15} />}
        flex="1 1 14rem"
        value={filter}
        onChange={(event) => onChange(event.currentTarget.value)}
        autoComplete="off"
        spellCheck={false}
      />
      <Text size="sm" c="dimmed" role="status">
        {shown === count ? `${count} tools` : shown === 0 ? 'No tool matches' : `${shown} of ${count} tools`}
      </Text>
    </Group>
  );
}

/**
 * The indexes of the tools in which every word stands; undefined without a filter. A tool stays visible while it is
 * edited, so they are found again only when the filter or the list changes.
 */
function useFiltered(filter: string): number[] | undefined {
  const { store } = useEditor();
  const listed = useEdited((state) => state.listed);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `listed` says when the tools are to be read again
  return useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return undefined;
    return toolsOf(store.now().config).flatMap(({ name, method, url, description }, index) => {
      const text = [name, method, url, description].map(textOf).join('\n').toLowerCase();
      return words.every((word) => text.includes(word)) ? [index] : [];
    });
  }, [filter, listed, store]);
}

/** What was found in each tool that has something, by its index. */
function useFoundByTool(): ReadonlyMap<number, Found> {
  const { problems, warnings, isShown } = useFindings();
  return useMemo(() => {
    const found = new Map<number, Found>();
    const count = (kind: keyof Found, { path }: FieldProblem) => {
      const tool = /^tools\[(\d+)\]/.exec(path);
      if (!tool || (kind === 'problems' && !isShown(tool[0]))) return;
      const index = Number(tool[1]);
      const before = found.get(index) ?? { problems: 0, warnings: 0 };
      found.set(index, { ...before, [kind]: before[kind] + 1 });
    };
    for (const problem of problems) count('problems', problem);
    for (const warning of warnings) count('warnings', warning);
    return found;
  }, [problems, warnings, isShown]);
}
