import { Stack, Text } from '@mantine/core';
import { IconBell } from '@tabler/icons-react';
import { notificationEvents } from '@toolhost/server/notification-events';
import { api } from '../api.ts';
import type { NotificationEvent, NotificationRecord } from '../api-types.ts';
import { queryKeys } from '../query-keys.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { PageHeader } from '../ui/page-header.tsx';
import { PagedList } from '../ui/paged-list.tsx';
import { type Column, RowName, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Empty } from '../ui/states/empty.tsx';
import { LoadTogether } from '../ui/states/load-together.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { ViewerNote } from '../ui/states/viewer-note.tsx';
import { Hint } from '../ui/text/hint.tsx';
import { TextLink } from '../ui/text/text-link.tsx';
import { Time } from '../ui/text/time.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { useOperationQuery, usePages } from '../use-operation-query.ts';
import { EventChoice } from './event-choice.tsx';
import { WebhooksSection } from './webhooks-section.tsx';

export function NotificationsPage() {
  return (
    <>
      <PageHeader title="Notifications" guide="docs/notifications.md" />
      <ViewerNote>Only editors and owners can create webhooks.</ViewerNote>
      <LoadTogether>
        <Stack gap="md">
          <WebhooksSection />
          <MailSection />
          <HistorySection />
        </Stack>
      </LoadTogether>
    </>
  );
}

const formatMailStatus = (isAvailable: boolean, email: string | undefined) => {
  if (!isAvailable) return 'Email is not configured. To turn it on, start the service with SMTP_URL.';
  if (email === undefined) return 'Your identity provider did not share an email address, so you cannot receive email.';
  return `Sent to ${toVisible(email)}.`;
};

/** Email notification settings of the signed-in user. Each change is saved immediately. */
function MailSection() {
  const query = useOperationQuery(queryKeys.notifications, 'getNotificationSettings', {});
  const choose = useAction({
    run: (events: NotificationEvent[]) => api('setNotificationSettings', { events }),
    toast: ({ events }) => (events.length === 0 ? 'Email notifications are off' : 'Saved email notifications'),
    refresh: [queryKeys.notifications],
    toastFailure: true,
  });
  return (
    <Section title="Email to you">
      <Loaded query={query}>
        {({ events, email, mail_available: isAvailable }) => (
          <Stack gap="sm">
            <Hint>{formatMailStatus(isAvailable, email)}</Hint>
            {isAvailable && email !== undefined && (
              <EventChoice
                aria-label="Email notifications"
                value={choose.isPending ? choose.variables : events}
                onChange={(selected) => choose.mutate(selected as NotificationEvent[])}
              />
            )}
          </Stack>
        )}
      </Loaded>
    </Section>
  );
}

const columns: Column<NotificationRecord>[] = [
  {
    label: 'Event',
    cell: ({ event, text, page }) => (
      <RowName name={<TextLink to={page}>{notificationEvents[event].label}</TextLink>}>{toVisible(text)}</RowName>
    ),
  },
  { label: 'Time', narrow: 'end', cell: ({ at }) => <Time at={at} /> },
  {
    label: 'Deliveries',
    cell: ({ deliveries, attempts }) =>
      deliveries.map(({ to, name, state, error }) => (
        <Text key={`${to} ${name}`} inherit {...(error && { c: 'var(--th-bad)' })}>
          {toVisible(name)}: {formatState(state, attempts)}
          {error && ` (${toVisible(error)})`}
        </Text>
      )),
  },
];

function formatState(state: NotificationRecord['deliveries'][number]['state'], attempts: number): string {
  if (state === 'delivered') return 'Delivered';
  if (state === 'failed') return `Failed after ${attempts} attempts`;
  return attempts === 0 ? 'Pending' : 'Retrying';
}

function HistorySection() {
  const pages = usePages(queryKeys.notificationHistory, 'listNotifications', { limit: 20 }, 15_000);
  return (
    <Section title="Recent notifications" isFlush>
      <PagedList pages={pages} getRows={({ notifications }) => notifications} nextPageLabel="Show more" isInCard>
        {(notifications) =>
          notifications.length > 0 ? (
            <Rows label="Recent notifications" columns={columns} rows={notifications} getKey={({ id }) => id} />
          ) : (
            <Empty
              icon={<IconBell />}
              title="No notifications yet"
              text="A failing API is reported within two minutes, other events within about an hour."
            />
          )
        }
      </PagedList>
    </Section>
  );
}
