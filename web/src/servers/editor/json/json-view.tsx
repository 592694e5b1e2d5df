import { Box, Textarea } from '@mantine/core';
import { IconBraces } from '@tabler/icons-react';
import { type KeyboardEvent, useId } from 'react';
import { Section } from '../../../ui/section.tsx';
import { completionsAt, insertAt } from './json-completion.ts';
import { Suggestions } from './suggestions.tsx';
import { useCaret } from './use-caret.ts';

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
          autosize
          minRows={18}
          maxRows={36}
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
