import { Box, Group, Text } from '@mantine/core';

/** The duration of a call, divided into the API's time and ours. */
export function TimingBar({ total, upstream }: { total: number; upstream: number | undefined }) {
  const own = Math.max(0, total - (upstream ?? 0));
  const share = total > 0 ? ((upstream ?? 0) / total) * 100 : 0;
  return (
    <Group gap="sm" wrap="nowrap">
      <Box w={90} h={8} bg="var(--th-line)" style={{ borderRadius: 4, overflow: 'hidden' }} aria-hidden>
        <Box h="100%" w={`${share}%`} bg="var(--th-accent)" />
      </Box>
      <Text size="sm">
        {total} ms
        <Text span size="sm" c="dimmed">
          {upstream === undefined ? ' · nothing was sent' : ` · API ${upstream} ms, Toolhost ${own} ms`}
        </Text>
      </Text>
    </Group>
  );
}
