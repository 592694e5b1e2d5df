import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useCanEdit } from '../../frame/session.ts';

/** Explains to viewers why they cannot use the controls here; empty for others. */
export function ViewerNote({ children }: { children: ReactNode }) {
  if (useCanEdit()) return null;
  return (
    <Text size="sm" c="dimmed">
      You are a viewer of this workspace. {children}
    </Text>
  );
}
