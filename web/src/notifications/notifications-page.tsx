import { Anchor, Stack, Text } from '@mantine/core';
import { IconBell } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { noticeEvents } from '../../../src/domain/notices.ts';
import type { Notice } from '../answers.ts';
import { api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { More } from '../ui/more.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { type Column, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Empty } from '../ui/states/empty.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { ViewerNote } from '../ui/states/viewer-note.tsx';
import { Time } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';
import { MailSection } from './mail-section.tsx';
import { WebhooksSection } from './webhooks-section.tsx';

/** Who is told of what, and what was told. */
export function NotificationsPage() {
  return (
    <>
      <PageHeader
        title="Notifications"
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

const columns: Column<Notice>[] = [
  {
    label: 'What',
    cell: ({ event, text, page }) => (
      <div>
        <Text size="sm" fw={600}>
          <Anchor component={Link} to={page} inherit>
            {noticeEvents[event].label}
          </Anchor>
        </Text>
        <Text size="xs" c="dimmed">
          {visible(text)}
        </Text>
      </div>
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
  const pages = useInfiniteQuery({
    queryKey: queryKeys.notices,
    queryFn: ({ pageParam, signal }) => api('listNotices', { limit: 20, cursor: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: 15_000,
  });
  return (
    <Section title="What was told" text="In the last 30 days, the same thing once a day at most." flush>
      <Loaded query={pages}>
        {({ pages: answers }) => {
          const notices = answers.flatMap((page) => page.notices);
          if (notices.length === 0)
            return (
              <Empty
                icon={<IconBell size={24} />}
                title="Nothing yet"
                text="Only what somebody wants to be told of is noticed, within a minute or two."
                order={2}
              />
            );
          return <Rows label="What was told" columns={columns} rows={notices} keyOf={({ id }) => id} />;
        }}
      </Loaded>
      <More pages={pages} isInCard>
        Show more
      </More>
    </Section>
  );
}
