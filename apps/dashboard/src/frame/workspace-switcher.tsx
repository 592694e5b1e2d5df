import { Group, Menu, Text, UnstyledButton } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconCheck, IconPlus, IconSelector } from '@tabler/icons-react';
import { lazy, Suspense, useReducer } from 'react';
import { api } from '../api.ts';
import type { Workspace } from '../api-types.ts';
import { basePath } from '../base-path.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { toVisible } from '../ui/text/visible.ts';
import { useSession } from './session.ts';

const NewWorkspace = lazy(async () => ({ default: (await import('./new-workspace.tsx')).NewWorkspace }));

/** Switches to another workspace and opens its home page. */
export function useSwitchWorkspace() {
  return useAction({
    run: (to: Workspace) => api('switchWorkspace', { workspace_id: to.id }),
    onSuccess: () => location.assign(`${basePath}/`),
    toastFailure: true,
  });
}

export function WorkspaceSwitcher() {
  const { workspace, workspaces } = useSession();
  const switchWorkspace = useSwitchWorkspace();
  const [hasOpened, markOpened] = useReducer(() => true, false);
  const [isOpen, dialog] = useDisclosure(false, { onOpen: markOpened });
  return (
    <>
      <Menu width={216} position="bottom-start" withinPortal>
        <Menu.Target>
          <UnstyledButton className="th-side-button" aria-label={`Workspace ${toVisible(workspace.name)}`}>
            <Group justify="space-between" wrap="nowrap" gap="xs">
              <Text fw={500} truncate>
                {toVisible(workspace.name)}
              </Text>
              <IconSelector size={16} stroke={1.5} aria-hidden />
            </Group>
          </UnstyledButton>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>Your workspaces</Menu.Label>
          {workspaces.map((entry) => (
            <Menu.Item
              key={entry.id}
              onClick={() => entry.id !== workspace.id && switchWorkspace.mutate(entry)}
              rightSection={entry.id === workspace.id ? <IconCheck size={14} aria-label="current" /> : null}
            >
              {toVisible(entry.name)}
              <Text size="xs" c="dimmed">
                {entry.own ? 'your own' : entry.role}
              </Text>
            </Menu.Item>
          ))}
          <Menu.Divider />
          <Menu.Item leftSection={<IconPlus size={14} aria-hidden />} onClick={dialog.open}>
            New workspace
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {hasOpened && (
        <Suspense>
          <NewWorkspace opened={isOpen} onClose={dialog.close} />
        </Suspense>
      )}
    </>
  );
}
