import { Button, Group, Stack, Tabs, Text } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { CodeBlock } from '../../ui/code-block.tsx';
import { Section } from '../../ui/section.tsx';
import { type Snippet, snippetsFor, type Target } from './snippets.ts';

export function Clients({ target }: { target: Target }) {
  const snippets = snippetsFor(target);
  return (
    <Section title="Client" text="Choose yours and copy.">
      <Tabs defaultValue="claude-code" variant="pills">
        <Tabs.List aria-label="Clients" mb="md">
          {snippets.map(({ id, title }) => (
            <Tabs.Tab key={id} value={id}>
              {title}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {snippets.map((snippet) => (
          <Tabs.Panel key={snippet.id} value={snippet.id}>
            <SnippetView snippet={snippet} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </Section>
  );
}

function SnippetView({ snippet: { title, where, code, install, after } }: { snippet: Snippet }) {
  return (
    <Stack gap="xs">
      {install && (
        <Group gap="sm">
          <Button component="a" href={install.href} leftSection={<IconDownload size={16} />}>
            {install.label}
          </Button>
          <Text size="sm" c="dimmed">
            or by hand:
          </Text>
        </Group>
      )}
      <Text size="sm">{where}</Text>
      <CodeBlock code={code} label={`snippet for ${title}`} />
      {after && (
        <Text size="sm" c="dimmed" className="th-after">
          {after}
        </Text>
      )}
    </Stack>
  );
}
