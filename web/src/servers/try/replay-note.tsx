import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { IconRepeat } from '@tabler/icons-react';
import { Time } from '../../ui/text/time.tsx';
import { visible } from '../../ui/text/visible.ts';
import type { Replayed } from './use-replay.ts';

type Props = {
  replayed: Replayed;
  /** Names of arguments that are sent and have no field. */
  hidden: readonly string[];
  onLeaveOut: () => void;
};

/** What stands in the form after a recorded call was taken over. */
export function ReplayNote({ replayed, hidden, onLeaveOut }: Props) {
  const isRedacted = JSON.stringify(replayed.args).includes('[redacted]');
  return (
    <Alert color="blue" icon={<IconRepeat size={18} />} title="Arguments of a recorded call">
      <Stack gap="xs">
        <Text size="sm">
          They are those of a call <Time at={replayed.at} />. Nothing is sent until you call the tool.
        </Text>
        {isRedacted && (
          <Text size="sm">A credential in them was not kept: where they say [redacted], type it again.</Text>
        )}
        {hidden.length > 0 && (
          <Group gap="sm">
            <Text size="sm">Also sent, without a field: {visible(hidden.join(', '))}.</Text>
            <Button size="compact-sm" variant="default" onClick={onLeaveOut}>
              {hidden.length === 1 ? 'Leave it out' : 'Leave them out'}
            </Button>
          </Group>
        )}
      </Stack>
    </Alert>
  );
}
