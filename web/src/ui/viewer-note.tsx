import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useCanEdit } from '../frame/session.ts';

/** Why what stands here cannot be used; nothing for those who can. */
export function ViewerNote({ children }: { children: ReactNode }) {
  if (useCanEdit()) return null;
  return (
    <Text size="sm" c="dimmed">
      You are a viewer of this workspace. {children}
    </Text>
  );
}
