import { Box, Text } from '@mantine/core';
import type { DeletedServer } from '../../answers.ts';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { RowButton } from '../../ui/actions/row-button.tsx';
import { useAction } from '../../ui/actions/use-action.ts';
import { useQuestion } from '../../ui/actions/use-question.tsx';
import { Folded } from '../../ui/folded.tsx';
import { type Column, Rows } from '../../ui/rows.tsx';
import { Time } from '../../ui/text/time.tsx';
import { visible } from '../../ui/text/visible.ts';
import { useAnswer } from '../../use-answer.ts';

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
  { label: 'Secrets', cell: ({ secret_count }) => secret_count, end: true },
  { label: 'Deleted', cell: ({ deleted_at }) => <Time at={deleted_at} /> },
  { label: 'Restorable until', cell: ({ restorable_until }) => <Time at={restorable_until} /> },
];

/** Deleted servers that can still be restored. */
export function DeletedServers() {
  const canEdit = useCanEdit();
  const { data } = useAnswer([...queryKeys.servers, 'deleted'], 'listDeletedServers', { limit: 100 });
  const restore = useAction({
    run: ({ slug }: DeletedServer) => api('restoreMcpServer', { slug }),
    done: (_, { name }) => `Restored ${visible(name)}`,
    refresh: [queryKeys.servers],
    toastFailure: true,
  });
  const secrets = useQuestion({
    title: ({ name }: DeletedServer) => `Delete all secrets of ${visible(name)}?`,
    text: () => 'The server can still be restored, but its secrets must be set again.',
    action: 'Delete secrets',
    run: ({ slug }) => api('deleteSecretsOfDeletedServer', { slug }),
    done: () => 'Deleted the secrets',
    refresh: [queryKeys.servers],
  });
  if (!data || data.servers.length === 0) return null;
  return (
    <Box mt="md">
      <Folded label={`Deleted servers (${data.servers.length}${data.next_cursor === undefined ? '' : ' and more'})`}>
        <div className="th-card">
          <Rows
            label="Deleted servers"
            columns={columns}
            rows={data.servers}
            keyOf={({ slug }) => slug}
            actions={
              canEdit &&
              ((server) => (
                <>
                  <RowButton
                    label="Restore"
                    of={visible(server.name)}
                    isPending={restore.isPending && restore.variables === server}
                    onClick={() => restore.mutate(server)}
                  />
                  {server.secret_count > 0 && (
                    <RowButton label="Delete secrets" of={visible(server.name)} onClick={() => secrets.ask(server)} />
                  )}
                </>
              ))
            }
          />
        </div>
      </Folded>
      {secrets.dialog}
    </Box>
  );
}
