import { Button, Group, Text } from '@mantine/core';

type Props = { id: string; words: readonly string[]; onAccept: (word: string) => void };

/** Allowed texts at the caret; a click or Alt+Enter inserts one. */
export function Suggestions({ id, words, onAccept }: Props) {
  return (
    <Group id={id} gap={6} mt="xs" mih={28}>
      <Text size="xs" c="dimmed">
        {words.length > 0 ? 'Here may stand:' : 'Names and values that are allowed appear here.'}
      </Text>
      {words.slice(0, 12).map((word) => (
        <Button
          key={word}
          size="compact-xs"
          variant="default"
          className="th-mono"
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onAccept(word)}
        >
          {word}
        </Button>
      ))}
    </Group>
  );
}
