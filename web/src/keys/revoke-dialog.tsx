import { Text } from '@mantine/core';
import type { ApiKey } from '../answers.ts';
import { api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { Confirm } from '../ui/actions/confirm.tsx';
import { useAction } from '../ui/actions/use-action.ts';
import { visible } from '../ui/text/visible.ts';

type Props = { apiKey: ApiKey | undefined; onClose: () => void };

export function RevokeDialog({ apiKey, onClose }: Props) {
  const revoke = useAction({
    run: (key: ApiKey) => api('revokeApiKey', { id: key.id }),
    done: (_, key) => `Revoked ${visible(key.name)}`,
    refresh: [queryKeys.keys],
    onDone: onClose,
  });
  return (
    <Confirm
      opened={apiKey !== undefined}
      title={`Revoke ${visible(apiKey?.name ?? '')}?`}
      action="Revoke key"
      isPending={revoke.isPending}
      error={revoke.error}
      onClose={onClose}
      onConfirm={() => apiKey && revoke.mutate(apiKey)}
    >
      <Text size="sm">Whatever uses it is refused within two seconds. A revoked key cannot be used again.</Text>
    </Confirm>
  );
}
