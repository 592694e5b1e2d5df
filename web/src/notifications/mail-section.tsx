import { Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { NoticeEvent } from '../answers.ts';
import { api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { Section } from '../ui/section.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { visible } from '../ui/text/visible.ts';
import { EventChoice } from './event-choice.tsx';

/** What the person who is signed in is told of by mail. Each choice is stored at once. */
export function MailSection() {
  const query = useQuery({
    queryKey: queryKeys.notifications,
    queryFn: ({ signal }) => api('getNotifications', {}, { signal }),
  });
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
            <Text size="sm" c="dimmed">
              {!isAvailable
                ? 'The operator of this service has not set up mail (SMTP_URL).'
                : email === undefined
                  ? 'Your identity provider gives no address of yours, so there is nowhere to mail to.'
                  : `Goes to ${visible(email)}.`}
            </Text>
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
