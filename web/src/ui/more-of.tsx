import { Button, Group, Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';

type Props<Entry> = {
  entries: readonly Entry[];
  /** How many there are, where the answer has only the first of them. */
  count: number;
  /** The entries in words, such as "tools that change". */
  of: string;
  atOnce?: number;
  children: (entry: Entry) => ReactNode;
};

/** The first entries of a long list, and a button that shows more of them. */
export function MoreOf<Entry>({ entries, count, of, atOnce = 25, children }: Props<Entry>) {
  const [shown, setShown] = useState(atOnce);
  const hidden = count - entries.length;
  return (
    <>
      {entries.slice(0, shown).map(children)}
      {entries.length > shown ? (
        <Group>
          <Button variant="default" size="xs" onClick={() => setShown(shown + atOnce)}>
            Show more {of} ({(count - shown).toLocaleString('en')})
          </Button>
        </Group>
      ) : (
        hidden > 0 && (
          <Text size="sm" c="dimmed">
            {hidden.toLocaleString('en')} more are not shown.
          </Text>
        )
      )}
    </>
  );
}
