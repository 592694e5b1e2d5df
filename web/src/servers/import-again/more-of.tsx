import { Button, Group, Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';

const shownAtOnce = 25;

type Props<Entry> = {
  entries: readonly Entry[];
  /** How many there are, where the answer has only the first of them. */
  count: number;
  /** The entries in words, such as "tools that change". */
  of: string;
  children: (entry: Entry) => ReactNode;
};

/** The first entries of a long list, and a button that shows more of them. */
export function MoreOf<Entry>({ entries, count, of, children }: Props<Entry>) {
  const [shown, setShown] = useState(shownAtOnce);
  const left = entries.length - shown;
  return (
    <>
      {entries.slice(0, shown).map(children)}
      {left > 0 && (
        <Group>
          <Button variant="default" size="xs" onClick={() => setShown(shown + shownAtOnce)}>
            Show more {of} ({(count - shown).toLocaleString('en')})
          </Button>
        </Group>
      )}
      {left <= 0 && count > entries.length && (
        <Text size="sm" c="dimmed">
          {(count - entries.length).toLocaleString('en')} more are not shown.
        </Text>
      )}
    </>
  );
}
