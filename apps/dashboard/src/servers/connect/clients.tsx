import { Button, Group, Stack, Tabs, Text } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import type { ClientConnection } from '@toolhost/mcp-clients/client';
import { createSnippets } from '@toolhost/mcp-clients/clients';
import { Section } from '../../ui/section.tsx';
import { CodeBlock } from '../../ui/text/code-block.tsx';

export function Clients({ connection }: { connection: ClientConnection }) {
  const snippets = createSnippets(connection);
  return (
    <Section title="Client" text="Choose your client and copy the snippet.">
      <Tabs defaultValue="claude-code" variant="pills">
        <Tabs.List aria-label="Clients" mb="md">
          {snippets.map(({ id, name }) => (
            <Tabs.Tab key={id} value={id}>
              {name}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {snippets.map(({ id, name, where, code, install, after }) => (
          <Tabs.Panel key={id} value={id}>
            <Stack gap="xs">
              {install && (
                <Group gap="sm">
                  <Button
                    component="a"
                    href={install.href}
                    {...getLinkTarget(install.href)}
                    leftSection={<IconDownload size={16} />}
                  >
                    {install.label}
                  </Button>
                  <Text size="sm" c="dimmed">
                    or manually:
                  </Text>
                </Group>
              )}
              <Text size="sm">{where}</Text>
              <CodeBlock code={code} label={`snippet for ${name}`} />
              {after && (
                <Text size="sm" c="dimmed">
                  {after}
                </Text>
              )}
            </Stack>
          </Tabs.Panel>
        ))}
      </Tabs>
    </Section>
  );
}

/** Opens web pages in a new tab. Links with an application scheme do not leave the dashboard. */
const getLinkTarget = (href: string) => (href.startsWith('https:') ? { target: '_blank', rel: 'noreferrer' } : {});
