import { Stack, Text } from '@mantine/core';
import { IconBell } from '@tabler/icons-react';
import { noticeEvents } from '../../../src/domain/notices.ts';
import type { Notice, NoticeEvent } from '../answers.ts';
import { api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { PagedList } from '../ui/more.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { type Column, RowName, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Empty } from '../ui/states/empty.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { ViewerNote } from '../ui/states/viewer-note.tsx';
import { Hint } from '../ui/text/hint.tsx';
import { TextLink } from '../ui/text/text-link.tsx';
import { Time } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';
import { useAnswer, usePages } from '../use-answer.ts';
import { EventChoice } from './event-choice.tsx';
import { WebhooksSection } from './webhooks-section.tsx';

/** Who is told of what, and what was told. */
export function NotificationsPage() {
  return (
    <>
      <PageHeader
        title="Notifications"
        guide="docs/notifications.md"
        text="Be told when an API fails or something is about to end, by a webhook or by mail."
      />
      <ViewerNote>Only editors and owners make webhooks.</ViewerNote>
      <Stack gap="md">
        <WebhooksSection />
        <MailSection />
        <ToldSection />
      </Stack>
    </>
  );
}

const mailText = (isAvailable: boolean, email: string | undefined) => {
  if (!isAvailable) return 'The operator of this service has not set up mail (SMTP_URL).';
  if (email === undefined) return 'Your identity provider gives no address of yours, so there is nowhere to mail to.';
  return `Goes to ${visible(email)}.`;
};

/** What the person who is signed in is told of by mail. Each choice is stored at once. */
function MailSection() {
  const query = useAnswer(queryKeys.notifications, 'getNotifications', {});
  const choose = useAction({
    run: (events: NoticeEvent[]) => api('setNotifications', { events }),
    done: ({ events }) => (events.length === 0 ? 'You get no mail' : 'Saved what you are mailed'),
    refresh: [queryKeys.notifications],
    toastFailure: true,
  });
  return (
    <Section title="Mail to you" text="In this workspace, for yourself only.">
      <Loaded query={query}>
        {({ events, email, mail_available: isAvailable }) => (
          <Stack gap="sm">
            <Hint>{mailText(isAvailable, email)}</Hint>
            <EventChoice
              aria-label="What you are mailed"
              value={choose.isPending ? choose.variables : events}
              onChange={(wanted) => choose.mutate(wanted as NoticeEvent[])}
              disabled={!isAvailable || email === undefined}
            />
          </Stack>
        )}
      </Loaded>
    </Section>
  );
}

const columns: Column<Notice>[] = [
  {
    label: 'What',
    cell: ({ event, text, page }) => (
      <RowName
        name={
          <TextLink to={page} inherit>
            {noticeEvents[event].label}
          </TextLink>
        }
      >
        {visible(text)}
      </RowName>
    ),
  },
  { label: 'When', cell: ({ at }) => <Time at={at} /> },
  {
    label: 'Told',
    cell: ({ deliveries, attempts }) =>
      deliveries.map(({ to, name, state, error }) => (
        <Text key={`${to} ${name}`} size="xs" {...(error && { c: 'var(--th-bad)' })}>
          {visible(name)}: {stateText(state, attempts)}
          {error && ` (${visible(error)})`}
        </Text>
      )),
  },
];

function stateText(state: Notice['deliveries'][number]['state'], attempts: number): string {
  if (state === 'delivered') return 'told';
  if (state === 'given_up') return `given up after ${attempts} attempts`;
  return attempts === 0 ? 'on its way' : 'is tried again';
}

function ToldSection() {
  const pages = usePages(queryKeys.notices, 'listNotices', { limit: 20 }, 15_000);
  return (
    <Section title="What was told" text="In the last 30 days, the same thing once a day at most." flush>
      <PagedList pages={pages} rowsOf={({ notices }) => notices} more="Show more" isInCard>
        {(notices) =>
          notices.length > 0 ? (
            <Rows label="What was told" columns={columns} rows={notices} keyOf={({ id }) => id} />
          ) : (
            <Empty
              icon={<IconBell size={24} />}
              title="Nothing yet"
              text="Only what somebody wants to be told of is noticed, within a minute or two."
            />
          )
        }
      </PagedList>
    </Section>
  );
}
