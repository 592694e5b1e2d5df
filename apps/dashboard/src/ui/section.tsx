import { Box, Group, Text, Title } from '@mantine/core';
import { type ReactNode, useId } from 'react';

type Props = { title: string; text?: ReactNode; actions?: ReactNode; isFlush?: boolean; children?: ReactNode };

/** Part of a page with a heading. `isFlush` puts its content, such as a table, into a panel. */
export function Section({ title, text, actions, isFlush = false, children }: Props) {
  const id = useId();
  return (
    <Box component="section" className="th-section" aria-labelledby={id}>
      <Group justify="space-between" align="flex-start" gap="sm" mb="sm">
        <Box miw={0} flex="1 1 16rem">
          <Title order={2} id={id}>
            {title}
          </Title>
          {text && (
            <Text c="dimmed" maw={720}>
              {text}
            </Text>
          )}
        </Box>
        {actions}
      </Group>
      <div {...(isFlush && { className: 'th-card' })}>{children}</div>
    </Box>
  );
}
