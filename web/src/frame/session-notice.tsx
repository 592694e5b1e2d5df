import { Alert, Button, Group, Text } from '@mantine/core';
import { IconLock } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { readAgain } from '../query-client.ts';
import { queryKeys } from '../query-keys.ts';
import { useFlag } from './use-flag.ts';

/** Shows that the session has ended, and leaves the page unchanged. */
export function SessionNotice() {
  const client = useQueryClient();
  const isEnded = useFlag(queryKeys.sessionEnded);
  if (!isEnded) return null;
  const resume = () => readAgain(client);
  return (
    <Alert
      color="yellow"
      icon={<IconLock size={18} />}
      title="Your session has ended"
      role="alert"
      className="th-notice"
    >
      <Text size="sm">
        What you typed is still here. Sign in again in a new tab, come back to this one and repeat what you did.
      </Text>
      <Group mt="xs" gap="sm">
        <Button size="xs" component="a" href="/login?return_to=/servers" target="_blank" rel="noopener">
          Sign in in a new tab
        </Button>
        <Button size="xs" variant="default" onClick={resume}>
          I have signed in
        </Button>
      </Group>
    </Alert>
  );
}
