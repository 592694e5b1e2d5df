import { Text } from '@mantine/core';
import { visible, visibleJson } from '../../ui/text/visible.ts';

type Props = { before: unknown; after: unknown; label: string };

const signs = { added: '+ ', removed: '− ', same: '  ', gap: '' } as const;

/** The differences between two configurations, line by line. */
export function Diff({ before, after, label }: Props) {
  const lines = diffLines(visibleJson(before).split('\n'), visibleJson(after).split('\n'));
  if (lines.every(({ kind }) => kind === 'gap')) {
    return (
      <Text size="sm" c="dimmed">
        There is no difference.
      </Text>
    );
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must be reachable by keyboard
    <section className="th-code th-diff" aria-label={label} tabIndex={0}>
      {lines.map(({ kind, text }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have nothing else to be told apart by
        <div key={index} data-kind={kind}>
          {signs[kind]}
          {visible(text)}
        </div>
      ))}
    </section>
  );
}

type DiffLine = { kind: 'added' | 'removed' | 'same' | 'gap'; text: string };

/** The longest common subsequence, without the equal lines at both ends. */
function diffLines(before: readonly string[], after: readonly string[], around = 2): DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < Math.min(before.length, after.length) - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const middle = changed(before.slice(start, before.length - end), after.slice(start, after.length - end));
  const same = (text: string): DiffLine => ({ kind: 'same', text });
  return shorten(
    [...before.slice(0, start).map(same), ...middle, ...before.slice(before.length - end).map(same)],
    around,
  );
}

const mostCells = 4_000_000;

function changed(a: readonly string[], b: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: 'removed', text });
  const added = (text: string): DiffLine => ({ kind: 'added', text });
  if (a.length * b.length > mostCells) return [...a.map(removed), ...b.map(added)];
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i++] ?? '' });
      j++;
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) lines.push(removed(a[i++] ?? ''));
    else lines.push(added(b[j++] ?? ''));
  }
  return lines;
}

/** Leaves out lines that are far from any change. */
function shorten(lines: readonly DiffLine[], around: number): DiffLine[] {
  const isNear = lines.map(() => false);
  lines.forEach(({ kind }, index) => {
    if (kind !== 'same') isNear.fill(true, Math.max(0, index - around), index + around + 1);
  });
  const short: DiffLine[] = [];
  lines.forEach((line, index) => {
    if (isNear[index]) short.push(line);
    else if (short.at(-1)?.kind !== 'gap') short.push({ kind: 'gap', text: '⋯' });
  });
  return short;
}
