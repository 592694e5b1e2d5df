import { Button, Group, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { noticeEvents } from '../../../src/domain/notices.ts';
import type { Webhook } from '../answers.ts';
import { api } from '../api.ts';
import { useCanEdit } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { Confirm } from '../ui/actions/confirm.tsx';
import { useAction } from '../ui/actions/use-action.ts';
import { type Column, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { Time } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';
import { useTest } from './use-test.ts';
import { WebhookDialog } from './webhook-dialog.tsx';

const columns: Column<Webhook>[] = [
  {
    label: 'Address',
    cell: ({ origin }) => (
      <Text size="sm" className="th-mono">
        {visible(origin)}/…
      </Text>
    ),
  },
  { label: 'Told of', cell: ({ events }) => events.map((event) => noticeEvents[event].label).join(', ') },
  { label: 'Made', cell: ({ created_at }) => <Time at={created_at} /> },
];

export function WebhooksSection() {
  const canEdit = useCanEdit();
  const [isOpen, dialog] = useDisclosure(false);
  const [deleted, setDeleted] = useState<Webhook>();
  const test = useTest();
  const query = useQuery({
    queryKey: queryKeys.webhooks,
    queryFn: ({ signal }) => api('listWebhooks', {}, { signal }),
  });
  const remove = useAction({
    run: ({ id }: Webhook) => api('deleteWebhook', { id }),
    done: () => 'Deleted the webhook',
    refresh: [queryKeys.webhooks],
    onDone: () => setDeleted(undefined),
  });
  const actions: Column<Webhook> = {
    label: 'Actions',
    quiet: true,
    end: true,
    cell: (webhook) => (
      <Group gap={6} justify="flex-end" wrap="nowrap">
        <Button
          size="compact-sm"
          variant="default"
          loading={test.isPending && test.variables.id === webhook.id}
          onClick={() => test.mutate(webhook)}
          aria-label={`Test ${visible(webhook.origin)}`}
        >
          Test
        </Button>
        <Button
          size="compact-sm"
          variant="default"
          onClick={() => setDeleted(webhook)}
          aria-label={`Delete ${visible(webhook.origin)}`}
        >
          Delete
        </Button>
      </Group>
    ),
  };
  return (
    <Section
      title="Webhooks"
      text="Each notice is a signed POST to an address of yours. It is tried for a day until it is taken."
      actions={
        canEdit && (
          <Button variant="default" leftSection={<IconPlus size={16} />} onClick={dialog.open}>
            New webhook
          </Button>
        )
      }
      flush
    >
      <Loaded query={query}>
        {({ webhooks }) =>
          webhooks.length === 0 ? (
            <Text size="sm" c="dimmed" px="md" pb="md">
              None yet. The workspace may have five.
            </Text>
          ) : (
            <Rows
              label="Webhooks"
              columns={canEdit ? [...columns, actions] : columns}
              rows={webhooks}
              keyOf={({ id }) => id}
            />
          )
        }
      </Loaded>
      <WebhookDialog opened={isOpen} onClose={dialog.close} />
      <Confirm
        opened={deleted !== undefined}
        title={`Delete the webhook to ${visible(deleted?.origin ?? '')}?`}
        action="Delete webhook"
        isPending={remove.isPending}
        error={remove.error}
        onClose={() => setDeleted(undefined)}
        onConfirm={() => deleted && remove.mutate(deleted)}
      >
        <Text size="sm">What it was not told yet is dropped. A new one has another secret.</Text>
      </Confirm>
    </Section>
  );
}
