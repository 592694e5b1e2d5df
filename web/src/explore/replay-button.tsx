import { Button, Text } from '@mantine/core';
import { IconRepeat } from '@tabler/icons-react';
import { Link } from 'react-router';
import type { Call, Capture } from '../answers.ts';

/** The address of Try it with the arguments of a recorded call filled in. Nothing is sent there by itself. */
function replayPath({ server, tool, id }: Call): string {
  return `/servers/${server}/try?${new URLSearchParams({ tool, replay: id })}`;
}

export function ReplayButton({ call, capture }: { call: Call; capture: Capture }) {
  if (!capture.arguments) {
    return (
      <Text size="sm" c="dimmed">
        The arguments are too long to be kept, so the call cannot be replayed.
      </Text>
    );
  }
  return (
    <Button
      component={Link}
      to={replayPath(call)}
      variant="default"
      leftSection={<IconRepeat size={16} />}
      style={{ alignSelf: 'flex-start' }}
    >
      Replay in Try it
    </Button>
  );
}
