import { Alert, Text } from '@mantine/core';
import { IconWifiOff } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { queryKeys } from '../query-keys.ts';
import { useFlag } from './use-flag.ts';

const againMs = 3_000;

/** Shows that the service is out of reach, and polls until it is back. */
export function ConnectionNotice() {
  const client = useQueryClient();
  const isLost = useFlag(queryKeys.unreachable);
  useEffect(() => {
    if (!isLost) return;
    const timer = setInterval(() => void client.refetchQueries({ queryKey: queryKeys.session }), againMs);
    return () => clearInterval(timer);
  }, [client, isLost]);
  if (!isLost) return null;
  return (
    <Alert
      color="yellow"
      icon={<IconWifiOff size={18} />}
      title="The connection is lost"
      role="alert"
      className="th-notice"
    >
      <Text size="sm">
        What is shown may be old; what you typed is still here. This goes away when the service answers again.
      </Text>
    </Alert>
  );
}
