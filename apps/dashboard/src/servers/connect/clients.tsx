import { Alert, Anchor, Button, Group, Select, Stack, Text } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { type ClientConnection, clientGroups, type DeclaredClient } from '@toolhost/mcp-clients/client';
import { clients, findObstacle } from '@toolhost/mcp-clients/clients';
import { useState } from 'react';
import { getGuideUrl } from '../../guides.ts';
import { Section } from '../../ui/section.tsx';
import { CodeBlock } from '../../ui/text/code-block.tsx';
import { Hint } from '../../ui/text/hint.tsx';
import { TextLink } from '../../ui/text/text-link.tsx';
import { useCurrentServer } from '../server-page.tsx';

/** Clients that are selected at first: the first one that can use the server. */
const initialClients = ['claude', 'claude-code'];

export function Clients({ connection }: { connection: ClientConnection }) {
  const [selectedId, setSelectedId] = useState<string>();
  const initial = initialClients.map((id) => clients.find((client) => client.id === id));
  const selected =
    clients.find(({ id }) => id === selectedId) ??
    initial.find((client) => client && !findObstacle(client, connection));
  return (
    <Section title="Connect a client">
      <Stack gap="md">
        <Select
          label="Client"
          placeholder="Choose or search"
          searchable
          allowDeselect={false}
          maxDropdownHeight={400}
          data={clientGroups.map((group) => ({
            group,
            items: clients
              .filter((client) => client.group === group)
              .map(({ id, name }) => ({ value: id, label: name })),
          }))}
          nothingFoundMessage="Any other client for remote MCP servers (Streamable HTTP) can connect, too: enter the URL above."
          value={selected?.id ?? null}
          onChange={(id) => setSelectedId(id ?? undefined)}
          maw={320}
        />
        {selected && <Instructions key={selected.id} client={selected} connection={connection} />}
      </Stack>
    </Section>
  );
}

type Props = { client: DeclaredClient; connection: ClientConnection };

function Instructions({ client, connection }: Props) {
  const { name } = client;
  const snippet = client.snippet(connection);
  return (
    <Stack gap="xs" component="section" aria-label={name}>
      <ObstacleAlert client={client} connection={connection} />
      {snippet?.install && (
        <Group gap="sm">
          <Button
            component="a"
            href={snippet.install.href}
            {...getLinkTarget(snippet.install.href)}
            leftSection={<IconDownload size={16} />}
          >
            {snippet.install.label}
          </Button>
          <Hint>or manually:</Hint>
        </Group>
      )}
      {snippet && (
        <>
          <Text>{snippet.where}</Text>
          <CodeBlock code={snippet.code} label={`snippet for ${name}`} />
          {snippet.after && (snippet.command ? <Text>{snippet.after}</Text> : <Hint>{snippet.after}</Hint>)}
          {snippet.command && <CodeBlock code={snippet.command} label={`command for ${name}`} />}
        </>
      )}
    </Stack>
  );
}

/** Explains why a client cannot use the server, and what to do. */
function ObstacleAlert({ client, connection }: Props) {
  const { name } = client;
  const { server } = useCurrentServer();
  const obstacle = findObstacle(client, connection);
  const hasChoice = server.access === 'login';
  // The provider of an API has no keys. The snippet says where the token comes from.
  if (!obstacle || (obstacle === 'key' && !hasChoice)) return null;
  const guide = getGuideUrl('docs/claude-and-chatgpt.md');
  const addLogin = (
    <>
      Let people log in, in the{' '}
      <TextLink to={`/servers/${server.slug}/settings`} underline="always">
        settings
      </TextLink>
      , or choose another client.
    </>
  );
  const [problem, remedy] = {
    login: [
      `${name} can only log in, and has no field for an API key or a token.`,
      hasChoice ? 'Choose Log in under Access.' : addLogin,
    ],
    key: [`${name} cannot open a login page.`, 'Choose API key under Access.'],
    'public-url': [
      `${name} runs on the internet and cannot reach ${new URL(connection.url).host}.`,
      'Run Toolhost at a public https URL, or choose a client on your machine.',
    ],
  }[obstacle];
  return (
    <Alert color="yellow">
      {problem} {remedy}{' '}
      {obstacle !== 'key' && guide && (
        <Anchor href={guide} target="_blank" rel="noopener" size="sm" underline="always">
          Guide
        </Anchor>
      )}
    </Alert>
  );
}

/** Opens web pages in a new tab. Links with an application scheme do not leave the dashboard. */
const getLinkTarget = (href: string) => (href.startsWith('https:') ? { target: '_blank', rel: 'noreferrer' } : {});
