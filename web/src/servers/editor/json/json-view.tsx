import { Box, Button, Group, Text, Textarea } from '@mantine/core';
import { IconBraces } from '@tabler/icons-react';
import { type KeyboardEvent, useId, useLayoutEffect, useRef, useState } from 'react';
import { Section } from '../../../ui/section.tsx';
import { completionsAt, insertAt } from './json-completion.ts';

type Props = {
  text: string;
  problem: string | undefined;
  onChange: (text: string) => void;
  onBlur: () => void;
  isReadOnly: boolean;
};

const example = `Paste a configuration here, such as

{
  "name": "GitHub, read only",
  "slug": "github-read",
  "tools": [
    {
      "name": "get_repository",
      "description": "Get a public GitHub repository by owner and name",
      "method": "GET",
      "url": "https://api.github.com/repos/:owner/:repo",
      "input_schema": {
        "owner": { "type": "string" },
        "repo": { "type": "string" }
      }
    }
  ]
}`;

/** The configuration as JSON, with the names and values that are allowed at the caret. */
export function JsonView({ text, problem, onChange, onBlur, isReadOnly }: Props) {
  const caret = useCaret();
  const listId = useId();
  const found = isReadOnly || caret.at === undefined ? undefined : completionsAt(text, caret.at);
  const accept = (word: string) => {
    if (!found) return;
    const next = insertAt(text, found, word);
    onChange(next.text);
    caret.moveTo(next.caret);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    const first = found?.words[0];
    if (first !== undefined && found?.prefix && event.key === 'Enter' && event.altKey) {
      event.preventDefault();
      accept(first);
    }
  };
  return (
    <Box className="th-json-column">
      <Section
        title="JSON"
        text="The same configuration; what you change here shows in the form at once."
        actions={<IconBraces size={18} aria-hidden />}
      >
        <Textarea
          ref={caret.ref}
          aria-label="Configuration as JSON"
          className="th-mono th-json-text"
          spellCheck={false}
          placeholder={example}
          value={text}
          readOnly={isReadOnly}
          error={problem}
          onChange={(event) => onChange(event.currentTarget.value)}
          onSelect={caret.read}
          onKeyDown={onKeyDown}
          onBlur={onBlur}
          aria-describedby={listId}
        />
        <Suggestions id={listId} words={found?.words ?? []} onAccept={accept} />
      </Section>
    </Box>
  );
}

type SuggestionsProps = { id: string; words: readonly string[]; onAccept: (word: string) => void };

/** Allowed texts at the caret; a click or Alt+Enter inserts one. */
function Suggestions({ id, words, onAccept }: SuggestionsProps) {
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

/** The position of the caret in a text area, and a function that moves it after the text has changed. */
function useCaret() {
  const ref = useRef<HTMLTextAreaElement>(null);
  const wanted = useRef<number>(undefined);
  const [at, setAt] = useState<number>();
  useLayoutEffect(() => {
    if (wanted.current === undefined || !ref.current) return;
    ref.current.focus();
    ref.current.setSelectionRange(wanted.current, wanted.current);
    wanted.current = undefined;
  });
  return {
    ref,
    at,
    read: () => {
      const area = ref.current;
      setAt(area && area.selectionStart === area.selectionEnd ? area.selectionStart : undefined);
    },
    moveTo: (position: number) => {
      wanted.current = position;
      setAt(position);
    },
  };
}
