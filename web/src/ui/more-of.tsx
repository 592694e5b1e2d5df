import { Button, Group, Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';

type Props<Entry> = {
  entries: readonly Entry[];
  /** Total number, if the response has only the first entries. */
  count: number;
  /** Noun for the entries, such as "updated tools". */
  of: string;
  atOnce?: number;
  children: (entry: Entry) => ReactNode;
};

/** First entries of a long list, with a button that shows more. */
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
