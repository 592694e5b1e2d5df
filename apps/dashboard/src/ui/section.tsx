import { Box, Group, Text, Title } from '@mantine/core';
import { type ReactNode, useId } from 'react';

type Props = {
  title: string;
  /** True if the title repeats that of the tab, and is only for screen readers. */
  isTitleHidden?: boolean;
  text?: ReactNode;
  actions?: ReactNode;
  isFlush?: boolean;
  children?: ReactNode;
};

/** Part of a page with a heading. `isFlush` puts its content, such as a table, into a panel. */
export function Section({ title, isTitleHidden = false, text, actions, isFlush = false, children }: Props) {
  const id = useId();
  return (
    <Box component="section" className="th-section" aria-labelledby={id}>
      <Group justify="space-between" align="flex-start" gap="sm" mb={!children || (isTitleHidden && !text) ? 0 : 'sm'}>
        <Box miw={0} flex="1 1 12rem">
          <Title order={2} id={id} {...(isTitleHidden && { className: 'th-unseen' })}>
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
