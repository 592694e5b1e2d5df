import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { IconGitMerge } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { messageOf } from '../../ui/states/problem-alert.tsx';
import { VersionChanges } from '../change-list.tsx';
import type { Base } from './model/use-base.ts';

type Props = { base: Base; slug: string; error: Error | null; onSettled: () => void };

/** Shows a newer version that another person has stored, beside the edit, which stays. */
export function ConflictNotice({ base, slug, error, onSettled }: Props) {
  const theirs = useQuery({
    queryKey: ['newest', slug, error],
    queryFn: () => api('getMcpServer', { slug }),
    staleTime: 0,
  });
  const settle = useAction({
    run: (isMineKept: boolean) => base.rebase(isMineKept),
    onDone: onSettled,
    toastFailure: true,
  });
  return (
    <Alert color="yellow" icon={<IconGitMerge size={18} />} title="Somebody changed this server meanwhile" role="alert">
      <Stack gap="sm">
        <Text size="sm">{error ? messageOf(error) : ''} Your changes are still here and nothing was overwritten.</Text>
        {theirs.data && (
          <>
            <Text size="sm" fw={600}>
              What changed from version {base.version} to version {theirs.data.server.version}
            </Text>
            <VersionChanges slug={slug} from={base.version} to={theirs.data.server.version} />
          </>
        )}
        <Group gap="sm">
          <Button size="xs" onClick={() => settle.mutate(true)} loading={settle.isPending}>
            Keep mine on top of the newest
          </Button>
          <Button size="xs" variant="default" onClick={() => settle.mutate(false)} disabled={settle.isPending}>
            Take theirs and drop mine
          </Button>
        </Group>
        <Text size="xs" c="dimmed">
          Keeping yours brings both together; where both changed the same field, yours stays. Nothing is stored before
          you save.
        </Text>
      </Stack>
    </Alert>
  );
}
