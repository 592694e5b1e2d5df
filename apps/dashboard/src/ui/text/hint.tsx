import { Text, type TextProps } from '@mantine/core';
import type { ReactNode } from 'react';

/** Small gray text that explains adjacent content. */
export function Hint(props: TextProps & { children: ReactNode }) {
  return <Text size="hint" c="dimmed" {...props} />;
}
