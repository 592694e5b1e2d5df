import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { IconGitMerge } from '@tabler/icons-react';
import { useAction } from '../../ui/actions/use-action.ts';
import { getErrorMessage } from '../../ui/states/problem-alert.tsx';
import { useOperationQuery } from '../../use-operation-query.ts';
import { VersionChanges } from '../change-list.tsx';
import type { Base } from './model/use-base.ts';

type Props = { base: Base; slug: string; error: Error | null; onResolved: () => void };

/** Shows a newer version that someone else has saved. The user's edit is kept. */
export function ConflictAlert({ base, slug, error, onResolved }: Props) {
  const newest = useOperationQuery(['newest', slug, error], 'getMcpServer', { slug }, { staleTime: 0 });
  const resolve = useAction({
    run: (shouldKeepEdits: boolean) => base.rebase(shouldKeepEdits),
    onSuccess: onResolved,
    toastFailure: true,
  });
  return (
    <Alert color="yellow" icon={<IconGitMerge size={18} />} title="Someone else changed this server" role="alert">
      <Stack gap="sm">
        <Text>{error ? getErrorMessage(error) : ''} Your changes are kept, and nothing was overwritten.</Text>
        {newest.data && (
          <>
            <Text fw={600}>
              Changes from version {base.version} to version {newest.data.server.version}
            </Text>
            <VersionChanges slug={slug} from={base.version} to={newest.data.server.version} />
          </>
        )}
        <Group gap="sm">
          <Button onClick={() => resolve.mutate(true)} loading={resolve.isPending}>
            Keep my changes
          </Button>
          <Button variant="default" onClick={() => resolve.mutate(false)} disabled={resolve.isPending}>
            Discard my changes
          </Button>
        </Group>
        <Text size="xs" c="dimmed">
          Keeping your changes merges both versions. Where both changed the same field, yours wins. Nothing is stored
          until you save.
        </Text>
      </Stack>
    </Alert>
  );
}
