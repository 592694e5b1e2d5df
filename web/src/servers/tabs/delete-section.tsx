import { Button, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from 'react-router';
import { api } from '../../api.ts';
import { readAgain } from '../../query-client.ts';
import { queryKeys } from '../../query-keys.ts';
import { Confirm } from '../../ui/actions/confirm.tsx';
import { useAction } from '../../ui/actions/use-action.ts';
import { Section } from '../../ui/section.tsx';
import { visible } from '../../ui/text/visible.ts';
import { useShownServer } from '../server-page.tsx';

export function DeleteSection() {
  const { server } = useShownServer();
  const [isOpen, modal] = useDisclosure(false);
  const navigate = useNavigate();
  const client = useQueryClient();
  const remove = useAction({
    run: () => api('deleteMcpServer', { slug: server.slug }),
    done: () => `Deleted ${visible(server.name)}`,
    onDone: async () => {
      await navigate('/servers');
      client.removeQueries({ queryKey: queryKeys.server(server.slug) });
      await readAgain(client, { queryKey: queryKeys.servers });
    },
  });
  return (
    <Section
      title="Delete this server"
      text="Its secrets and logins go with it. The slug can never be used again, so that nobody can take over an address that agents trust."
    >
      <Button color="red.8" variant="outline" onClick={modal.open} c="var(--th-bad)">
        Delete server…
      </Button>
      <Confirm
        opened={isOpen}
        title={`Delete ${visible(server.name)}?`}
        action="Delete server"
        word={server.slug}
        isPending={remove.isPending}
        error={remove.error}
        onClose={modal.close}
        onConfirm={() => remove.mutate()}
      >
        <Text size="sm">Every connected client stops working at once. This cannot be undone.</Text>
      </Confirm>
    </Section>
  );
}
