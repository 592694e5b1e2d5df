import { Text, type TextProps } from '@mantine/core';
import type { ReactNode } from 'react';

/** A small grey text that explains what stands beside it. */
export function Hint(props: TextProps & { children: ReactNode }) {
  return <Text size="sm" c="dimmed" {...props} />;
}
