import { Badge, Button, Text } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { noticeEvents } from '../../../src/domain/notices.ts';
import type { Webhook } from '../answers.ts';
import { api } from '../api.ts';
import { useCanEdit } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { ConfirmAction } from '../ui/actions/confirm.tsx';
import { type Column, RowAction, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { Time } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';
import { useTest, WebhookDialog } from './webhook-dialog.tsx';

const columns: Column<Webhook>[] = [
  {
    label: 'Address',
    cell: ({ origin, paused_at }) => (
      <>
        <span className="th-mono">{visible(origin)}/…</span> {paused_at && <Badge color="gray">paused</Badge>}
      </>
    ),
  },
  { label: 'Told of', cell: ({ events }) => events.map((event) => noticeEvents[event].label).join(', ') },
  { label: 'Made', cell: ({ created_at }) => <Time at={created_at} /> },
];

export function WebhooksSection() {
  const canEdit = useCanEdit();
  const [edited, setEdited] = useState<Webhook | 'new'>();
  const [deleted, setDeleted] = useState<Webhook>();
  const test = useTest();
  const query = useQuery({
    queryKey: queryKeys.webhooks,
    queryFn: ({ signal }) => api('listWebhooks', {}, { signal }),
  });
  const actions = (webhook: Webhook) => {
    const of = visible(webhook.origin);
    const isTested = test.isPending && test.variables.id === webhook.id;
    return (
      <>
        <RowAction label="Test" of={of} loading={isTested} onClick={() => test.mutate(webhook)} />
        <RowAction label="Edit" of={of} onClick={() => setEdited(webhook)} />
        <RowAction label="Delete" of={of} onClick={() => setDeleted(webhook)} />
      </>
    );
  };
  return (
    <Section
      title="Webhooks"
      text="Each notice is a signed POST to an address of yours. It is tried for a day until it is taken."
      actions={
        canEdit && (
          <Button variant="default" leftSection={<IconPlus size={16} />} onClick={() => setEdited('new')}>
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
              columns={columns}
              rows={webhooks}
              keyOf={({ id }) => id}
              actions={canEdit ? actions : undefined}
            />
          )
        }
      </Loaded>
      <WebhookDialog edited={edited} onClose={() => setEdited(undefined)} />
      <ConfirmAction
        subject={deleted}
        title={({ origin }) => `Delete the webhook to ${visible(origin)}?`}
        action="Delete webhook"
        run={({ id }) => api('deleteWebhook', { id })}
        done={() => 'Deleted the webhook'}
        refresh={[queryKeys.webhooks]}
        onClose={() => setDeleted(undefined)}
      >
        <Text size="sm">What it was not told yet is dropped. A new one has another secret.</Text>
      </ConfirmAction>
    </Section>
  );
}
