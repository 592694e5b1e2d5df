import { Box, Group, NavLink, Stack } from '@mantine/core';
import { IconActivity, IconHistory, IconKey, IconServer2, IconSettings } from '@tabler/icons-react';
import { Link, useLocation } from 'react-router';
import { Logo } from './logo.tsx';
import { Person } from './person.tsx';
import { SchemeSwitch } from './scheme-switch.tsx';
import { WorkspaceSwitcher } from './workspace-switcher.tsx';

const pages = [
  { to: '/servers', label: 'Servers', Icon: IconServer2 },
  { to: '/keys', label: 'API keys', Icon: IconKey },
  { to: '/calls', label: 'Calls', Icon: IconActivity },
  { to: '/audit', label: 'Audit', Icon: IconHistory },
  { to: '/settings', label: 'Settings', Icon: IconSettings },
];

export function Navigation() {
  const { pathname } = useLocation();
  const isHere = (to: string) => pathname.startsWith(to) || (pathname === '/' && to === '/servers');
  return (
    <Stack h="100%" justify="space-between" gap="md">
      <Stack gap="md">
        <Box px="xs" pt={4} visibleFrom="sm">
          <Logo />
        </Box>
        <WorkspaceSwitcher />
        <Stack component="nav" gap={2} aria-label="Main">
          {pages.map(({ to, label, Icon }) => (
            <NavLink
              key={to}
              component={Link}
              to={to}
              label={label}
              className="th-nav-link"
              active={isHere(to)}
              aria-current={isHere(to) ? 'page' : undefined}
              leftSection={<Icon size={18} stroke={1.7} aria-hidden />}
            />
          ))}
        </Stack>
      </Stack>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Person />
        <SchemeSwitch />
      </Group>
    </Stack>
  );
}
