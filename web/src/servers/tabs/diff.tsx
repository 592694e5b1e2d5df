import { Text } from '@mantine/core';
import { visible, visibleJson } from '../../ui/text/visible.ts';
import { diffLines } from './diff-lines.ts';

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
