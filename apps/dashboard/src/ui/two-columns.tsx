import { SimpleGrid } from '@mantine/core';
import type { ReactNode } from 'react';

/** Two-column form layout, with one column in a narrow window. */
export function TwoColumns({ children }: { children: ReactNode }) {
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm" maw={640}>
      {children}
    </SimpleGrid>
  );
}
