import { Box, Group, Text, Title } from '@mantine/core';
import { type ReactNode, useId } from 'react';

type Props = { title: string; text?: ReactNode; actions?: ReactNode; isFlush?: boolean; children?: ReactNode };

/** Card with a heading. `isFlush` lets a table reach its edges. */
export function Section({ title, text, actions, isFlush = false, children }: Props) {
  const id = useId();
  return (
    <Box component="section" className="th-card" aria-labelledby={id}>
      <Group justify="space-between" align="flex-start" gap="sm" px="md" pt="md" pb={isFlush ? 'sm' : 0}>
        <Box miw={0} flex="1 1 16rem">
          <Title order={2} id={id}>
            {title}
          </Title>
          {text && (
            <Text c="dimmed" size="sm" mt={2}>
              {text}
            </Text>
          )}
        </Box>
        {actions}
      </Group>
      <Box p={isFlush ? 0 : 'md'}>{children}</Box>
    </Box>
  );
}
