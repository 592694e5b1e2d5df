import { Button, Center, Stack } from '@mantine/core';
import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Loaded } from './states/loaded.tsx';

type ListProps<Page, Row> = {
  pages: UseInfiniteQueryResult<InfiniteData<Page>>;
  getRows: (page: Page) => readonly Row[];
  /** Label of the button for the next page. */
  nextPageLabel: string;
  /** True if the list is inside a card. */
  isInCard?: boolean;
  children: (rows: Row[], lastPage: Page | undefined) => ReactNode;
};

/** Loaded pages of a list in a card, with a button for the next page. */
export function PagedList<Page, Row>({
  pages,
  getRows,
  nextPageLabel,
  isInCard = false,
  children,
}: ListProps<Page, Row>) {
  return (
    <Loaded query={pages}>
      {({ pages: loadedPages }) => (
        <Stack gap={isInCard ? 0 : 'md'}>
          <div {...(!isInCard && { className: 'th-card' })}>
            {children(loadedPages.flatMap(getRows), loadedPages.at(-1))}
          </div>
          <NextPageButton pages={pages} isInCard={isInCard}>
            {nextPageLabel}
          </NextPageButton>
        </Stack>
      )}
    </Loaded>
  );
}

type ButtonProps = {
  pages: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
  /** True if the button is at the end of a card and needs padding. */
  isInCard?: boolean;
  children: ReactNode;
};

/** Button for the next page. Renders nothing on the last page. */
export function NextPageButton({ pages, isInCard = false, children }: ButtonProps) {
  if (!pages.hasNextPage) return null;
  return (
    <Center p={isInCard ? 'sm' : 0}>
      <Button variant="default" loading={pages.isFetchingNextPage} onClick={() => pages.fetchNextPage()}>
        {children}
      </Button>
    </Center>
  );
}
