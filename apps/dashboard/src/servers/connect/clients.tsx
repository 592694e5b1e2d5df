import { Alert, Anchor, Box, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconDownload, IconSearch } from '@tabler/icons-react';
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
  const [search, setSearch] = useState('');
  const [selectedId, setSelectedId] = useState<string>();
  const matching = clients.filter(({ name }) => name.toLowerCase().includes(search.trim().toLowerCase()));
  const initial = initialClients.map((id) => clients.find((client) => client.id === id));
  const selected =
    matching.find(({ id }) => id === selectedId) ??
    initial.find((client) => client && matching.includes(client) && !findObstacle(client, connection)) ??
    matching[0];
  return (
    <Section title="Client">
      <Stack gap="md">
        <TextInput
          aria-label="Search clients"
          placeholder="Search"
          leftSection={<IconSearch size={16} />}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
          maw={320}
        />
        {clientGroups.map((group) => {
          const members = matching.filter((client) => client.group === group);
          if (members.length === 0) return null;
          return (
            <Box key={group} className="th-clients" role="group" aria-label={group}>
              <Text size="xs" c="dimmed">
                {group}
              </Text>
              <Group gap={4}>
                {members.map(({ id, name }) => (
                  <Button
                    key={id}
                    size="compact-sm"
                    variant={id === selected?.id ? 'light' : 'subtle'}
                    {...(id !== selected?.id && { color: 'gray' })}
                    aria-pressed={id === selected?.id}
                    onClick={() => setSelectedId(id)}
                  >
                    {name}
                  </Button>
                ))}
              </Group>
            </Box>
          );
        })}
        {selected ? (
          <Instructions key={selected.id} client={selected} connection={connection} />
        ) : (
          <Hint>
            No client here has this name. Any client for remote MCP servers (Streamable HTTP) can connect: its URL is{' '}
            {connection.url}
            {connection.token !== undefined && `, with the header Authorization: Bearer ${connection.token}`}.
          </Hint>
        )}
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
          <Text size="sm">{snippet.where}</Text>
          <CodeBlock code={snippet.code} label={`snippet for ${name}`} />
          {snippet.after && <Hint>{snippet.after}</Hint>}
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
