import { Alert, Button, Group, Text } from '@mantine/core';
import { IconLock } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { queryKeys } from '../query-keys.ts';

/** Says that the session has ended, and leaves everything on the page as it is. */
export function SessionNotice() {
  const client = useQueryClient();
  const ended = useQuery({
    queryKey: queryKeys.sessionEnded,
    queryFn: () => false,
    enabled: false,
    initialData: false,
  });
  if (!ended.data) return null;
  const resume = () => client.invalidateQueries();
  return (
    <Alert
      color="yellow"
      icon={<IconLock size={18} />}
      title="Your session has ended"
      mb="lg"
      role="alert"
      pos="sticky"
      top={12}
      style={{ zIndex: 150, background: 'var(--th-paper)', border: '1px solid var(--th-warn)' }}
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
