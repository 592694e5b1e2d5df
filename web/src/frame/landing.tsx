import { Anchor, Box, Button, Container, Group, SimpleGrid, Stack, Text, ThemeIcon, Title } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { IconArrowRight, IconLockCheck, IconPlugConnected, IconTool } from '@tabler/icons-react';
import { useLocation } from 'react-router';
import { basePath } from '../base-path.ts';
import { Logo } from './logo.tsx';
import { SchemeSwitch } from './scheme-switch.tsx';

const points = [
  {
    Icon: IconTool,
    title: 'A tool is one HTTP request',
    text: 'Describe the request once: address, arguments, headers. Agents get a tool that is checked before anything is sent.',
  },
  {
    Icon: IconPlugConnected,
    title: 'Every MCP client',
    text: 'Claude, Cursor, VS Code, Codex and every SDK connect to one address. Nothing to deploy for each server.',
  },
  {
    Icon: IconLockCheck,
    title: 'Credentials stay put',
    text: 'Secrets are sealed and go only to the hosts they are for. People log in at their own provider.',
  },
];

const sample = `{
  "name": "get_repository",
  "description": "Get a public repository",
  "method": "GET",
  "url": "https://api.github.com/repos/:owner/:repo",
  "input_schema": {
    "owner": { "type": "string" },
    "repo": { "type": "string" }
  }
}`;

/** A configuration, and the server that it becomes. */
function Sample() {
  return (
    <Box component="figure" m={0} className="th-card" p="md">
      <pre className="th-code">{sample}</pre>
      <Text component="figcaption" size="sm" c="dimmed" mt="sm">
        This is a whole tool. Every MCP client can call it, and only with arguments that fit.
      </Text>
    </Box>
  );
}

/** An introduction for people who are not signed in. */
export function Landing() {
  useDocumentTitle('Toolhost – HTTP APIs as hosted MCP servers');
  const { pathname, search } = useLocation();
  const signIn = `${basePath}/login?return_to=${encodeURIComponent(pathname + search)}`;
  return (
    <Box className="th-landing">
      <Container size="lg" py="xl">
        <Group justify="space-between" component="header">
          <Logo />
          <SchemeSwitch />
        </Group>
        <Stack component="main" gap="xl" mt={{ base: 48, sm: 88 }}>
          <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl" verticalSpacing="xl">
            <Box maw={640}>
              <Title order={1} fz={{ base: '2rem', sm: '2.75rem' }} lh={1.15}>
                HTTP APIs in, MCP servers out
              </Title>
              <Text size="lg" c="dimmed" mt="md">
                Toolhost turns the APIs that you use into hosted MCP servers. Write down what a request looks like, and
                agents can call it in a minute.
              </Text>
              <Group mt="xl" gap="md">
                <Button component="a" href={signIn} size="md" rightSection={<IconArrowRight size={18} />}>
                  Sign in
                </Button>
                <Anchor href={`${basePath}/schema/server.json`} size="sm">
                  The configuration's schema
                </Anchor>
              </Group>
            </Box>
            <Sample />
          </SimpleGrid>
          <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="md" mt="lg">
            {points.map(({ Icon, title, text }) => (
              <Box key={title} className="th-card" p="lg">
                <ThemeIcon variant="light" size="lg" aria-hidden>
                  <Icon size={20} />
                </ThemeIcon>
                <Title order={2} fz="1rem" mt="sm">
                  {title}
                </Title>
                <Text size="sm" c="dimmed" mt={4}>
                  {text}
                </Text>
              </Box>
            ))}
          </SimpleGrid>
        </Stack>
      </Container>
    </Box>
  );
}
