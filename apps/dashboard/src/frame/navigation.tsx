import { Box, Button, Group, Kbd, Menu, NavLink, Stack, Text, UnstyledButton } from '@mantine/core';
import {
  IconActivity,
  IconApi,
  IconBell,
  IconChartBar,
  IconHistory,
  IconHome,
  IconKey,
  IconLogout,
  IconSearch,
  IconServer2,
  IconSettings,
} from '@tabler/icons-react';
import { Link, useLocation } from 'react-router';
import { basePath } from '../base-path.ts';
import { toVisible } from '../ui/text/visible.ts';
import { Logo } from './logo.tsx';
import { SchemeSwitch } from './scheme-switch.tsx';
import { useSession } from './session.ts';
import { WorkspaceSwitcher } from './workspace-switcher.tsx';

export const pages = [
  { to: '/', label: 'Home', Icon: IconHome },
  { to: '/servers', label: 'Servers', Icon: IconServer2 },
  { to: '/keys', label: 'API keys', Icon: IconKey },
  { to: '/calls', label: 'Calls', Icon: IconActivity },
  { to: '/usage', label: 'Usage', Icon: IconChartBar },
  { to: '/audit', label: 'Audit', Icon: IconHistory },
  { to: '/notifications', label: 'Notifications', Icon: IconBell },
  { to: '/settings', label: 'Settings', Icon: IconSettings },
];

const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

export function Navigation({ onSearch }: { onSearch: () => void }) {
  const { pathname } = useLocation();
  const isCurrent = (to: string) => (to === '/' ? pathname === '/' : pathname.startsWith(to));
  return (
    <Stack h="100%" justify="space-between" gap="md">
      <Stack gap="md">
        <Box px="xs" pt={4} visibleFrom="sm">
          <Logo />
        </Box>
        <WorkspaceSwitcher />
        <Button
          variant="default"
          fw={400}
          justify="space-between"
          px="xs"
          c="dimmed"
          leftSection={<IconSearch size={16} stroke={1.5} aria-hidden />}
          rightSection={<Kbd size="xs">{isMac ? '⌘ K' : 'Ctrl K'}</Kbd>}
          styles={{ label: { flex: 1 } }}
          aria-keyshortcuts="Control+K Meta+K"
          onClick={onSearch}
        >
          Find anything
        </Button>
        <Stack component="nav" gap={2} aria-label="Main">
          {pages.map(({ to, label, Icon }) => (
            <NavLink
              key={to}
              component={Link}
              to={to}
              label={label}
              className="th-nav-link"
              active={isCurrent(to)}
              aria-current={isCurrent(to) ? 'page' : undefined}
              leftSection={<Icon size={16} stroke={1.5} aria-hidden />}
            />
          ))}
        </Stack>
      </Stack>
      <Group justify="space-between" wrap="nowrap" gap={4}>
        <UserMenu />
        <SchemeSwitch />
      </Group>
    </Stack>
  );
}

/** Signs out with fetch. A form would be submitted without an origin, because our pages send no referrer. */
async function signOut(): Promise<void> {
  await fetch(`${basePath}/logout`, { method: 'POST', redirect: 'manual' }).catch(() => undefined);
  location.assign(`${basePath}/`);
}

function UserMenu() {
  const { user, workspace } = useSession();
  const name = toVisible(user.name ?? user.email ?? user.id);
  return (
    <Menu position="top-start" width={220} withinPortal>
      <Menu.Target>
        <UnstyledButton className="th-side-button" miw={0} flex={1}>
          <Text fw={500} truncate>
            {name}
          </Text>
          <Text size="xs" c="dimmed" truncate>
            {workspace.role}
          </Text>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{toVisible(user.email ?? user.id)}</Menu.Label>
        <Menu.Item component={Link} to="/api-reference" leftSection={<IconApi size={16} />}>
          REST API
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={signOut}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
