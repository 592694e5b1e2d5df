import { Alert, Button, Group, Text } from '@mantine/core';
import { IconUsers } from '@tabler/icons-react';
import { toVisible } from '../ui/text/visible.ts';
import { useSession } from './session.ts';
import { useSwitchWorkspace } from './workspace-switcher.tsx';

/** Lists workspaces that the user was invited to and has never opened, which makes `chosen` false. */
export function InvitationAlert() {
  const { workspace, workspaces } = useSession();
  const switchWorkspace = useSwitchWorkspace();
  const joinedWorkspaces = workspaces.filter(({ id, own, chosen }) => !own && !chosen && id !== workspace.id);
  if (joinedWorkspaces.length === 0) return null;
  return (
    <Alert color="accent" icon={<IconUsers size={18} />} title="You were invited">
      <Text>You have joined {joinedWorkspaces.length === 1 ? 'another workspace' : 'other workspaces'}:</Text>
      {joinedWorkspaces.slice(0, maxListed).map((entry) => (
        <Group key={entry.id} gap="sm" mt="xs">
          <Text>
            <bdi>{toVisible(entry.name)}</bdi>, as {entry.role}
          </Text>
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => switchWorkspace.mutate(entry)}
            aria-label={`Open ${toVisible(entry.name)}`}
          >
            Open
          </Button>
        </Group>
      ))}
      <Text mt="xs">Anything you create there belongs to that workspace. Your own workspace is not affected.</Text>
    </Alert>
  );
}

/** Maximum number of workspaces listed. The workspace switcher has all of them. */
const maxListed = 5;
