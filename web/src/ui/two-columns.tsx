import { SimpleGrid } from '@mantine/core';
import type { ReactNode } from 'react';

type Props = { children: ReactNode; from?: 'xs' | 'sm'; maw?: number };

/** Fields of a form in two columns; in one where the window is narrower than the breakpoint `from`. */
export function TwoColumns({ children, from = 'xs', maw }: Props) {
  return (
    <SimpleGrid cols={{ base: 1, [from]: 2 }} spacing="sm" maw={maw}>
      {children}
    </SimpleGrid>
  );
}
