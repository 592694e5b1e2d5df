import { Group, Text } from '@mantine/core';
import { basePath } from '../base-path.ts';

export function Logo() {
  return (
    <Group gap="xs" wrap="nowrap">
      <img src={`${basePath}/favicon.svg`} width={20} height={20} alt="" />
      <Text component="span" fw={600} lts="-0.01em">
        Toolhost
      </Text>
    </Group>
  );
}
