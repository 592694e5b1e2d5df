import { SimpleGrid } from '@mantine/core';
import type { ReactNode } from 'react';

type Props = { children: ReactNode; from?: 'xs' | 'sm'; maw?: number };

/** Two-column form layout. One column if the window is narrower than the breakpoint `from`. */
export function TwoColumns({ children, from = 'xs', maw }: Props) {
  return (
    <SimpleGrid cols={{ base: 1, [from]: 2 }} spacing="sm" maw={maw}>
      {children}
    </SimpleGrid>
  );
}
