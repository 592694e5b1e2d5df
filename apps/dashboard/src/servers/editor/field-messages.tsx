import { Group, Stack, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { toSentence } from '../../ui/states/problem-alert.tsx';

export function Warnings({ list }: { list: readonly string[] }) {
  if (list.length === 0) return null;
  return (
    <Stack gap={2} mt={4}>
      {list.map((text) => (
        <Group key={text} gap={6} wrap="nowrap" align="flex-start" c="var(--th-warn)">
          <IconAlertTriangle size={14} style={{ flex: 'none', marginTop: 3 }} aria-label="Warning" />
          <Text size="xs">{toSentence(text)}</Text>
        </Group>
      ))}
    </Stack>
  );
}

export function Errors({ list }: { list: readonly string[] }) {
  if (list.length === 0) return null;
  return (
    <Stack gap={2} mt={4} role="alert">
      {list.map((text) => (
        <Text key={text} size="xs" c="var(--th-bad)">
          {toSentence(text)}
        </Text>
      ))}
    </Stack>
  );
}

/** Formats a field's errors for Mantine's inputs. */
export function formatErrors(list: readonly string[]): string | undefined {
  return list.length > 0 ? list.map(toSentence).join(' ') : undefined;
}

/** Formats a label within a sentence: `Tool name` → `a tool name`, `API token` → `an API token`. */
export function withArticle(label: string): string {
  const noun = label.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase());
  return `${/^(?:[aeiou]|API)/.test(noun) ? 'an' : 'a'} ${noun}`;
}
