import { Stack, Text, ThemeIcon, Title } from '@mantine/core';
import type { ReactNode } from 'react';

type Props = { icon: ReactNode; title: string; text: ReactNode; children?: ReactNode; order?: 1 | 2 };

export function Empty({ icon, title, text, children, order = 2 }: Props) {
  return (
    <Stack align="center" gap="xs" py={48} px="md" ta="center">
      <ThemeIcon size={48} radius="xl" variant="light" aria-hidden>
        {icon}
      </ThemeIcon>
      <Title order={order} mt="xs">
        {title}
      </Title>
      <Text c="dimmed" maw={460} size="sm">
        {text}
      </Text>
      {children}
    </Stack>
  );
}
