import { Skeleton, Stack } from '@mantine/core';

/** Skeleton with roughly the shape of the content. */
export function Loading({ rows = 4, height = 44 }: { rows?: number; height?: number }) {
  return (
    <Stack gap="sm" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => `row ${index}`).map((key) => (
        <Skeleton key={key} height={height} radius="md" />
      ))}
    </Stack>
  );
}

export function LoadingPage() {
  return (
    <Stack p="xl" maw={1100} mx="auto">
      <Skeleton height={32} width={220} radius="md" />
      <Loading />
    </Stack>
  );
}
