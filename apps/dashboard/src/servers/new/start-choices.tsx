import { Box, Group, SimpleGrid, Text, ThemeIcon } from '@mantine/core';
import { IconBooks, IconBraces, IconFileImport, IconForms, IconServer2 } from '@tabler/icons-react';
import { Link } from 'react-router';
import { useCanEdit } from '../../frame/session.ts';
import { Empty } from '../../ui/states/empty.tsx';

const choices = [
  {
    to: '/servers/new/import',
    title: 'From an API description',
    text: 'OpenAPI, Postman, Insomnia, Bruno, curl, and others. Choose the operations that become tools.',
    Icon: IconFileImport,
  },
  {
    to: '/servers/new/gallery',
    title: 'From an example',
    text: 'GitHub, Stripe, Slack, Notion, weather, and others. Complete servers for public APIs.',
    Icon: IconBooks,
  },
  {
    to: '/servers/new?from=json',
    title: 'From JSON',
    text: 'Paste a configuration written by you or an agent.',
    Icon: IconBraces,
  },
  {
    to: '/servers/new?from=form',
    title: 'From scratch',
    text: 'Fill in a form: name, access, and the first tool.',
    Icon: IconForms,
  },
];

export function StartChoices() {
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
      {choices.map(({ to, title, text, Icon }) => (
        <Box key={to} component={Link} to={to} className="th-card th-choice" p="lg">
          <Group gap="sm" wrap="nowrap" align="flex-start">
            <ThemeIcon variant="light" size="lg" aria-hidden>
              <Icon size={20} />
            </ThemeIcon>
            <div>
              <Text fw={600}>{title}</Text>
              <Text c="dimmed">{text}</Text>
            </div>
          </Group>
        </Box>
      ))}
    </SimpleGrid>
  );
}

/** Empty state of a workspace without servers. */
export function FirstServer() {
  const canEdit = useCanEdit();
  return (
    <div className="th-card">
      <Empty
        icon={<IconServer2 size={24} />}
        title="No servers yet"
        text={
          canEdit
            ? 'Your first server takes about a minute. Choose a starting point.'
            : 'Editors and owners can create servers.'
        }
      />
      {canEdit && (
        <Box p={{ base: 'md', sm: 'lg' }}>
          <StartChoices />
        </Box>
      )}
    </div>
  );
}
