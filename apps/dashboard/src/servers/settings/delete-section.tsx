import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from 'react-router';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { refetchQueries } from '../../query-client.ts';
import { queryKeys } from '../../query-keys.ts';
import { useConfirmation } from '../../ui/actions/use-confirmation.tsx';
import { Section } from '../../ui/section.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { useCurrentServer } from '../server-page.tsx';

export function DeleteSection() {
  const { server } = useCurrentServer();
  const canEdit = useCanEdit();
  const navigate = useNavigate();
  const client = useQueryClient();
  const remove = useConfirmation({
    title: ({ name }: typeof server) => `Delete ${toVisible(name)}?`,
    text: () => 'All connected clients stop working immediately. You can restore the server for 30 days.',
    action: 'Delete server',
    confirmText: server.slug,
    run: ({ slug }) => api('deleteMcpServer', { slug }),
    toast: (_, { name }) => `Deleted ${toVisible(name)}`,
    onSuccess: async (_, { slug }) => {
      await navigate('/servers');
      client.removeQueries({ queryKey: queryKeys.server(slug) });
      await refetchQueries(client, { queryKey: queryKeys.servers });
    },
  });
  return (
    <Section
      title="Delete server"
      text="You can restore it for 30 days, with its secrets and logins, below the list of servers. Its slug is never reused, so that no one can take over a URL that agents trust."
    >
      <ViewerNote>Only editors and owners can delete a server.</ViewerNote>
      {canEdit && (
        <Button color="red.8" variant="outline" onClick={() => remove.ask(server)} c="var(--th-bad)">
          Delete server…
        </Button>
      )}
      {remove.dialog}
    </Section>
  );
}
