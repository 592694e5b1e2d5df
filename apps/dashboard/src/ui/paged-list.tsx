import { Button, Center, Stack } from '@mantine/core';
import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Loaded } from './states/loaded.tsx';

type Props<Page, Row> = {
  pages: UseInfiniteQueryResult<InfiniteData<Page>>;
  getRows: (page: Page) => readonly Row[];
  /** Label of the button for the next page. */
  nextPageLabel: string;
  /** True if the list is inside a card. */
  isInCard?: boolean;
  children: (rows: Row[], lastPage: Page | undefined) => ReactNode;
};

/** Loaded pages of a list in a card, with a button for the next page. */
export function PagedList<Page, Row>({ pages, getRows, nextPageLabel, isInCard = false, children }: Props<Page, Row>) {
  return (
    <Loaded query={pages}>
      {({ pages: loadedPages }) => (
        <Stack gap={isInCard ? 0 : 'md'}>
          <div {...(!isInCard && { className: 'th-card' })}>
            {children(loadedPages.flatMap(getRows), loadedPages.at(-1))}
          </div>
          {pages.hasNextPage && (
            <Center p={isInCard ? 'sm' : 0}>
              <Button variant="default" loading={pages.isFetchingNextPage} onClick={() => pages.fetchNextPage()}>
                {nextPageLabel}
              </Button>
            </Center>
          )}
        </Stack>
      )}
    </Loaded>
  );
}
