import { Box, Button, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { DeletedServer } from '../../answers.ts';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Folded } from '../../ui/folded.tsx';
import { type Column, Rows } from '../../ui/rows.tsx';
import { Time } from '../../ui/text/time.tsx';
import { visible } from '../../ui/text/visible.ts';

const mostShown = 100;

const columns: Column<DeletedServer>[] = [
  {
    label: 'Server',
    cell: ({ name, slug }) => (
      <div>
        <Text fw={600} size="sm">
          {visible(name)}
        </Text>
        <Text size="xs" c="dimmed" className="th-mono">
          /mcp/{slug}
        </Text>
      </div>
    ),
  },
  { label: 'Tools', cell: ({ tool_count }) => tool_count, end: true },
  { label: 'Deleted', cell: ({ deleted_at }) => <Time at={deleted_at} /> },
  { label: 'Gone for good', cell: ({ restorable_until }) => <Time at={restorable_until} /> },
];

/** Deleted servers below the list, for as long as they can be restored. */
export function DeletedServers() {
  const canEdit = useCanEdit();
  const { data } = useQuery({
    queryKey: [...queryKeys.servers, 'deleted'],
    queryFn: ({ signal }) => api('listDeletedServers', { limit: mostShown }, { signal }),
  });
  if (!data || data.servers.length === 0) return null;
  const action: Column<DeletedServer> = {
    label: 'Action',
    quiet: true,
    end: true,
    cell: (server) => <Restore server={server} />,
  };
  return (
    <Box mt="md">
      <Folded label={`Deleted servers (${data.servers.length}${data.next_cursor === undefined ? '' : ' and more'})`}>
        <div className="th-card">
          <Rows
            label="Deleted servers"
            columns={canEdit ? [...columns, action] : columns}
            rows={data.servers}
            keyOf={({ slug }) => slug}
          />
        </div>
      </Folded>
    </Box>
  );
}

function Restore({ server: { slug, name } }: { server: DeletedServer }) {
  const restore = useAction({
    run: () => api('restoreMcpServer', { slug }),
    done: () => `Restored ${visible(name)}`,
    refresh: [queryKeys.servers],
    toastFailure: true,
  });
  return (
    <Button
      size="xs"
      variant="default"
      loading={restore.isPending}
      onClick={() => restore.mutate()}
      aria-label={`Restore ${visible(name)}`}
    >
      Restore
    </Button>
  );
}
