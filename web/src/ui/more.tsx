import { Button, Center } from '@mantine/core';
import type { ReactNode } from 'react';

type Props = {
  pages: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
  /** Whether it ends a card, whose edges it keeps away from. */
  isInCard?: boolean;
  children: ReactNode;
};

/** The way to the next page of a list that has one. */
export function More({ pages, isInCard = false, children }: Props) {
  if (!pages.hasNextPage) return null;
  return (
    <Center p={isInCard ? 'sm' : 0}>
      <Button variant="default" loading={pages.isFetchingNextPage} onClick={() => pages.fetchNextPage()}>
        {children}
      </Button>
    </Center>
  );
}
