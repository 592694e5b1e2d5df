import { Group, Text } from '@mantine/core';
import { basePath } from '../base-path.ts';

export function Logo() {
  return (
    <Group gap={9} wrap="nowrap">
      <img src={`${basePath}/favicon.svg`} width={24} height={24} alt="" />
      <Text component="span" fw={680} size="lg" style={{ letterSpacing: '-0.02em' }}>
        Toolhost
      </Text>
    </Group>
  );
}
