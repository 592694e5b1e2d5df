import { Box } from '@mantine/core';
import { api } from '../../api.ts';
import type { DeletedServer } from '../../api-types.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { RowButton } from '../../ui/actions/row-button.tsx';
import { useAction } from '../../ui/actions/use-action.ts';
import { useConfirmation } from '../../ui/actions/use-confirmation.tsx';
import { Collapsible } from '../../ui/collapsible.tsx';
import { type Column, RowName, Rows } from '../../ui/rows.tsx';
import { Time } from '../../ui/text/time.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { useOperationQuery } from '../../use-operation-query.ts';

const columns: Column<DeletedServer>[] = [
  {
    label: 'Server',
    cell: ({ name, slug }) => (
      <RowName name={toVisible(name)}>
        <span className="th-mono">/mcp/{slug}</span>
      </RowName>
    ),
  },
  { label: 'Tools', cell: ({ tool_count }) => tool_count, isEndAligned: true },
  { label: 'Secrets', cell: ({ secret_count }) => secret_count, isEndAligned: true },
  { label: 'Deleted', narrow: 'hidden', cell: ({ deleted_at }) => <Time at={deleted_at} /> },
  {
    label: 'Restorable until',
    narrow: 'labeled',
    cell: ({ restorable_until }) => <Time at={restorable_until} />,
  },
];

/** Deleted servers that can still be restored. */
export function DeletedServers() {
  const canEdit = useCanEdit();
  const { data } = useOperationQuery([...queryKeys.servers, 'deleted'], 'listDeletedServers', { limit: 100 });
  const restore = useAction({
    run: ({ slug }: DeletedServer) => api('restoreMcpServer', { slug }),
    toast: (_, { name }) => `Restored ${toVisible(name)}`,
    refresh: [queryKeys.servers],
    toastFailure: true,
  });
  const deleteSecrets = useConfirmation({
    title: ({ name }: DeletedServer) => `Delete all secrets of ${toVisible(name)}?`,
    text: () => 'The server can still be restored, but its secrets must be set again.',
    action: 'Delete secrets',
    run: ({ slug }) => api('deleteDeletedServerSecrets', { slug }),
    toast: () => 'Deleted the secrets',
    refresh: [queryKeys.servers],
  });
  if (!data || data.servers.length === 0) return null;
  return (
    <Box mt="md">
      <Collapsible
        label={`Deleted servers (${data.servers.length}${data.next_cursor === undefined ? '' : ' and more'})`}
      >
        <div className="th-card">
          <Rows
            label="Deleted servers"
            columns={columns}
            rows={data.servers}
            getKey={({ slug }) => slug}
            actions={
              canEdit &&
              ((server) => (
                <>
                  <RowButton
                    label="Restore"
                    subject={toVisible(server.name)}
                    isPending={restore.isPending && restore.variables === server}
                    onClick={() => restore.mutate(server)}
                  />
                  {server.secret_count > 0 && (
                    <RowButton
                      label="Delete secrets"
                      subject={toVisible(server.name)}
                      onClick={() => deleteSecrets.ask(server)}
                    />
                  )}
                </>
              ))
            }
          />
        </div>
      </Collapsible>
      {deleteSecrets.dialog}
    </Box>
  );
}
