import { Alert, Button, Group, Text } from '@mantine/core';
import { IconUsers } from '@tabler/icons-react';
import type { Workspace } from '../answers.ts';
import { visible } from '../ui/text/visible.ts';
import { useSession } from './session.ts';
import { useSwitch } from './workspace-switcher.tsx';

/** Lists workspaces that the user was invited to and has never opened. */
export function JoinedNotice() {
  const { workspace, workspaces } = useSession();
  const change = useSwitch();
  const joined = workspaces.filter(({ id, own, chosen }) => !own && !chosen && id !== workspace.id);
  if (joined.length === 0) return null;
  return (
    <Alert color="accent" icon={<IconUsers size={18} />} title="You were invited">
      <Text size="sm">You have joined {joined.length === 1 ? 'another workspace' : 'other workspaces'}:</Text>
      {joined.slice(0, mostNamed).map((entry) => (
        <Joined key={entry.id} entry={entry} onOpen={() => change.mutate(entry)} />
      ))}
      <Text size="sm" mt="xs">
        Anything you create there belongs to that workspace. Your own workspace is not affected.
      </Text>
    </Alert>
  );
}

/** Maximum number of workspaces listed. The workspace switcher has all of them. */
const mostNamed = 5;

function Joined({ entry: { name, role }, onOpen }: { entry: Workspace; onOpen: () => void }) {
  return (
    <Group gap="sm" mt="xs">
      <Text size="sm">
        <bdi>{visible(name)}</bdi>, as {role}
      </Text>
      <Button size="compact-sm" variant="default" onClick={onOpen} aria-label={`Open ${visible(name)}`}>
        Open
      </Button>
    </Group>
  );
}
