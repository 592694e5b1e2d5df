import { Badge, Button } from '@mantine/core';
import { IconPlus, IconWebhook } from '@tabler/icons-react';
import { notificationEvents } from '@toolhost/server/notification-events';
import { useState } from 'react';
import { api } from '../api.ts';
import type { Webhook } from '../api-types.ts';
import { useCanEdit, useSession } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { RowButton } from '../ui/actions/row-button.tsx';
import { useAction } from '../ui/actions/use-action.ts';
import { useConfirmation } from '../ui/actions/use-confirmation.tsx';
import { type Column, Names, RowName, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Empty } from '../ui/states/empty.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { Time } from '../ui/text/time.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { useOperationQuery } from '../use-operation-query.ts';
import { useTest, WebhookDialog } from './webhook-dialog.tsx';

const columns: Column<Webhook>[] = [
  {
    label: 'URL',
    cell: ({ origin, paused_at, unconfirmed }) => (
      <RowName
        name={
          <>
            <span className="th-mono">{toVisible(origin)}/…</span> {paused_at && <Badge>Paused</Badge>}
          </>
        }
      >
        {unconfirmed && "Its creator's access has ended. Another member can confirm it."}
      </RowName>
    ),
  },
  {
    label: 'Events',
    cell: ({ events }) => <Names list={events.map((event) => notificationEvents[event].label)} empty="None" />,
  },
  { label: 'Created', narrow: 'hidden', cell: ({ created_at }) => <Time at={created_at} /> },
];

export function WebhooksSection() {
  const canEdit = useCanEdit();
  const { user } = useSession();
  const [edited, setEdited] = useState<Webhook | 'new'>();
  const remove = useConfirmation({
    title: ({ origin }: Webhook) => `Delete the webhook to ${toVisible(origin)}?`,
    text: () => 'Undelivered notifications are dropped. A new webhook gets a different secret.',
    action: 'Delete webhook',
    run: ({ id }) => api('deleteWebhook', { id }),
    toast: () => 'Deleted the webhook',
    refresh: [queryKeys.webhooks],
  });
  const confirm = useAction({
    run: ({ id }: Webhook) => api('updateWebhook', { id, paused: false }),
    toast: (_, { origin }) => `Resumed the webhook to ${toVisible(origin)}`,
    refresh: [queryKeys.webhooks, queryKeys.members],
    toastFailure: true,
  });
  const test = useTest();
  const query = useOperationQuery(queryKeys.webhooks, 'listWebhooks', {});
  const renderActions = (webhook: Webhook) => {
    const host = toVisible(webhook.origin);
    const isAwaitingOthers = webhook.unconfirmed && webhook.created_by === user.id;
    const isTesting = test.isPending && test.variables.id === webhook.id;
    return (
      <>
        {webhook.unconfirmed && !isAwaitingOthers && (
          <RowButton
            label="Confirm"
            subject={host}
            isPending={confirm.isPending}
            onClick={() => confirm.mutate(webhook)}
          />
        )}
        {!webhook.unconfirmed && (
          <RowButton label="Test" subject={host} isPending={isTesting} onClick={() => test.mutate(webhook)} />
        )}
        {!isAwaitingOthers && <RowButton label="Edit" subject={host} onClick={() => setEdited(webhook)} />}
        <RowButton label="Delete" subject={host} onClick={() => remove.ask(webhook)} />
      </>
    );
  };
  const createButton = canEdit && (
    <Button variant="default" leftSection={<IconPlus size={16} />} onClick={() => setEdited('new')}>
      New webhook
    </Button>
  );
  return (
    <Section title="Webhooks" actions={Boolean(query.data?.webhooks.length) && createButton} isFlush>
      <Loaded query={query}>
        {({ webhooks }) =>
          webhooks.length === 0 ? (
            <Empty icon={<IconWebhook />} title="No webhooks yet" text="A webhook sends events to a URL of yours.">
              {createButton}
            </Empty>
          ) : (
            <Rows
              label="Webhooks"
              columns={columns}
              rows={webhooks}
              getKey={({ id }) => id}
              actions={canEdit && renderActions}
            />
          )
        }
      </Loaded>
      <WebhookDialog edited={edited} onClose={() => setEdited(undefined)} />
      {remove.dialog}
    </Section>
  );
}
