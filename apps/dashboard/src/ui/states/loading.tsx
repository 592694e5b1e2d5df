import { SimpleGrid, Skeleton, Stack } from '@mantine/core';

/** Skeleton with roughly the shape of the content. */
export function Loading({ rows = 2, height = 44 }: { rows?: number; height?: number }) {
  return (
    <Stack gap="sm" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => `row ${index}`).map((key) => (
        <Skeleton key={key} height={height} radius="md" />
      ))}
    </Stack>
  );
}

/** Height of a chart with its heading and panel. */
const chartHeight = 226;

export function LoadingCharts({ count }: { count: 1 | 2 }) {
  return (
    <SimpleGrid cols={{ base: 1, md: count }} spacing="md" role="status" aria-label="Loading">
      <Skeleton height={chartHeight} radius="md" />
      {count === 2 && <Skeleton height={chartHeight} radius="md" />}
    </SimpleGrid>
  );
}

export function LoadingPage() {
  return (
    <Stack>
      <Skeleton height={32} width={220} radius="md" />
      <Loading />
    </Stack>
  );
}
