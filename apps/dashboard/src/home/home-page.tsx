import { Button, List, Stack, Text } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { Link } from 'react-router';
import { Actor, Target } from '../audit/event-cells.tsx';
import { formatOperation } from '../audit/operation-text.ts';
import { InvitationAlert } from '../frame/invitation-alert.tsx';
import { useCanEdit } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { FirstServer } from '../servers/new/start-choices.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { Section } from '../ui/section.tsx';
import { LoadTogether } from '../ui/states/load-together.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { TextLink } from '../ui/text/text-link.tsx';
import { Time } from '../ui/text/time.tsx';
import { useOperationQuery } from '../use-operation-query.ts';
import { Activity } from './activity.tsx';
import { NeedsAttention, usePendingActions } from './needs-attention.tsx';

/** Home page of a workspace: pending actions, call activity, and recent changes. */
export function HomePage() {
  const canEdit = useCanEdit();
  const newest = useOperationQuery([...queryKeys.servers, 'newest'], 'listMcpServers', { limit: 1 });
  return (
    <>
      <PageHeader title="Home" guide="docs/tutorial.md">
        {canEdit && newest.data?.servers.length !== 0 && (
          <Button component={Link} to="/servers/new" leftSection={<IconPlus size={16} />}>
            New server
          </Button>
        )}
      </PageHeader>
      <InvitationAlert />
      <Loaded query={newest}>
        {({ servers: [server] }) =>
          server ? (
            <LoadTogether>
              <Stack gap="md">
                <PendingActions />
                <Activity newestSlug={server.slug} />
                <RecentChanges />
              </Stack>
            </LoadTogether>
          ) : (
            <FirstServer />
          )
        }
      </Loaded>
    </>
  );
}

const descriptionStates = { changed: 'has changed', unreadable: 'cannot be read' } as const;

/** Pending actions: missing secrets, and API descriptions that changed or cannot be read. */
function PendingActions() {
  const { data } = usePendingActions();
  const items = data?.servers.map(({ slug, missing_secrets, moved_secrets, description }) => {
    const [secret] = [...missing_secrets, ...moved_secrets];
    return {
      label: slug,
      text: [
        ...missing_secrets.map((name) => `${name} has no value`),
        ...moved_secrets.map((name) => `${name} was set for another host`),
        ...(description === undefined ? [] : [`its API description ${descriptionStates[description]}`]),
      ].join(', '),
      to: `/servers/${slug}${secret === undefined ? '' : `/settings/secrets?name=${secret}`}`,
      action: secret === undefined ? 'Show' : 'Set secret',
    };
  });
  return <NeedsAttention items={items ?? []} />;
}

const lowerFirst = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);

function RecentChanges() {
  const query = useOperationQuery([...queryKeys.audit, 'newest'], 'listAuditEvents', { limit: 6 });
  return (
    <Section title="Recent changes" actions={<TextLink to="/audit">All changes</TextLink>}>
      <Loaded query={query}>
        {({ events }) => (
          <List size="sm" spacing={6} listStyleType="none">
            {events.map((event) => (
              <List.Item key={event.id}>
                <Actor event={event} /> {lowerFirst(formatOperation(event.operation))}
                {event.target !== undefined && ': '}
                {event.target !== undefined && <Target event={event} />}
                <Text span inherit c="dimmed">
                  {' '}
                  · <Time at={event.at} />
                </Text>
              </List.Item>
            ))}
          </List>
        )}
      </Loaded>
    </Section>
  );
}
