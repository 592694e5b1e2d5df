import { Text } from '@mantine/core';
import { api } from '../api.ts';
import { useSession } from '../frame/session.ts';
import { Confirm } from '../ui/actions/confirm.tsx';
import { useAction } from '../ui/actions/use-action.ts';
import { visible } from '../ui/text/visible.ts';

/** Asks before the person who is signed in leaves the workspace. */
export function LeaveDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const { workspace } = useSession();
  const leave = useAction({
    run: () => api('leaveWorkspace', {}),
    onDone: () => location.assign('/'),
  });
  return (
    <Confirm
      opened={opened}
      title={`Leave ${visible(workspace.name)}?`}
      action="Leave workspace"
      isPending={leave.isPending}
      error={leave.error}
      onClose={onClose}
      onConfirm={() => leave.mutate(undefined)}
    >
      <Text size="sm">
        The logins of your agents in this workspace end at once. Servers and API keys that you made stay here. Only an
        owner can let you in again.
      </Text>
    </Confirm>
  );
}
