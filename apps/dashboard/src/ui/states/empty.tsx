import { Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';

type Props = { icon: ReactNode; title: string; text?: ReactNode; children?: ReactNode; order?: 1 | 2 };

export function Empty({ icon, title, text, children, order = 2 }: Props) {
  return (
    <Stack align="center" gap="xs" py={48} px="md" ta="center" className="th-empty">
      {icon}
      <div>
        <Title order={order}>{title}</Title>
        {text && (
          <Text c="dimmed" maw={460}>
            {text}
          </Text>
        )}
      </div>
      {children}
    </Stack>
  );
}
