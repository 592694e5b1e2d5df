import { Avatar, Box, Group, Menu, Text, UnstyledButton } from '@mantine/core';
import { IconLogout } from '@tabler/icons-react';
import { visible } from '../ui/text/visible.ts';
import { useSession } from './session.ts';

/** Uses fetch, because a form would be sent without an origin: our pages send no referrer. */
async function signOut(): Promise<void> {
  await fetch('/logout', { method: 'POST', redirect: 'manual' }).catch(() => undefined);
  location.assign('/');
}

/** Who is signed in, and signing out. */
export function Person() {
  const { user, workspace } = useSession();
  const name = visible(user.name ?? user.email ?? user.id);
  return (
    <Menu position="top-start" width={220} withinPortal>
      <Menu.Target>
        <UnstyledButton p={4} miw={0} flex={1}>
          <Group gap="xs" wrap="nowrap">
            <Avatar size={30} radius="xl" color="accent" aria-hidden>
              {name.slice(0, 1).toUpperCase()}
            </Avatar>
            <Box miw={0}>
              <Text size="sm" fw={550} truncate>
                {name}
              </Text>
              <Text size="xs" c="dimmed" truncate>
                {workspace.role}
              </Text>
            </Box>
          </Group>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{visible(user.email ?? user.id)}</Menu.Label>
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={signOut}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
