import { Button, Group, Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';

type Props<Entry> = {
  entries: readonly Entry[];
  /** Total number, if the response has only the first entries. */
  count: number;
  /** Noun for the entries, such as "updated tools". */
  noun: string;
  pageSize?: number;
  children: (entry: Entry) => ReactNode;
};

/** First entries of a long list, with a button that shows more. */
export function ExpandableList<Entry>({ entries, count, noun, pageSize = 25, children }: Props<Entry>) {
  const [shownCount, setShownCount] = useState(pageSize);
  const hiddenCount = count - entries.length;
  return (
    <>
      {entries.slice(0, shownCount).map(children)}
      {entries.length > shownCount ? (
        <Group>
          <Button variant="default" onClick={() => setShownCount(shownCount + pageSize)}>
            Show more {noun} ({(count - shownCount).toLocaleString('en')})
          </Button>
        </Group>
      ) : (
        hiddenCount > 0 && <Text c="dimmed">{hiddenCount.toLocaleString('en')} more are not shown.</Text>
      )}
    </>
  );
}
