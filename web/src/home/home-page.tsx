import { Anchor, Button, Group, List, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { api } from '../api.ts';
import { Actor, Target } from '../audit/event-parts.tsx';
import { operationText } from '../audit/operation-text.ts';
import { useCallFilter } from '../calls/call-filter.ts';
import { JoinedNotice } from '../frame/joined-notice.tsx';
import { useCanEdit, useSession } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { NoCalls } from '../servers/home/no-calls.tsx';
import { FirstServer } from '../servers/new/start-choices.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { Section } from '../ui/section.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { Time } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';
import { Busiest, Figures, PeriodSwitch, useCounted } from './activity.tsx';
import { Failures } from './failures.tsx';
import { Needs } from './needs.tsx';

/** The first page of a workspace: what fails, what is missing, what has changed. */
export function HomePage() {
  const { workspace } = useSession();
  const canEdit = useCanEdit();
  const newest = useQuery({
    queryKey: [...queryKeys.servers, 'newest'],
    queryFn: async ({ signal }) => (await api('listMcpServers', { limit: 1 }, { signal })).servers,
  });
  return (
    <>
      <PageHeader title="Home" guide="docs/tutorial.md" text={`How the servers of ${visible(workspace.name)} do.`}>
        {canEdit && newest.data?.length !== 0 && (
          <Button component={Link} to="/servers/new" variant="default">
            New server
          </Button>
        )}
      </PageHeader>
      <JoinedNotice />
      <Loaded query={newest}>
        {([server]) => (server ? <WorkspaceHome newest={server.slug} /> : <FirstServer />)}
      </Loaded>
    </>
  );
}

function WorkspaceHome({ newest }: { newest: string }) {
  const calls = useCallFilter({ usual: '7d' });
  const { period } = calls.filter;
  const counted = useCounted(calls.filter);
  return (
    <Stack gap="md">
      <Needs />
      <Group>
        <PeriodSwitch period={period} onChange={(next) => calls.change('period', next)} />
      </Group>
      <Loaded query={counted}>
        {(statistics) =>
          statistics?.by_server.length ? (
            <>
              <Figures counted={statistics} isOfServer={false} />
              <Failures {...calls} />
              <Busiest counted={statistics} period={period} />
            </>
          ) : (
            <NoCalls slug={newest} />
          )
        }
      </Loaded>
      <RecentChanges />
    </Stack>
  );
}

const mostChanges = 6;

function RecentChanges() {
  const query = useQuery({
    queryKey: [...queryKeys.audit, 'newest'],
    queryFn: async ({ signal }) => (await api('listAuditEvents', { limit: mostChanges }, { signal })).events,
  });
  return (
    <Section
      title="Recent changes"
      actions={
        <Anchor component={Link} to="/audit" size="sm">
          All changes
        </Anchor>
      }
    >
      <Loaded query={query}>
        {(events) => (
          <List size="sm" spacing={6} listStyleType="none">
            {events.map((event) => (
              <List.Item key={event.id}>
                {operationText(event.operation)} <Target event={event} isInText />
                <Text span size="sm" c="dimmed">
                  {' '}
                  · <Actor event={event} /> · <Time at={event.at} />
                </Text>
              </List.Item>
            ))}
          </List>
        )}
      </Loaded>
    </Section>
  );
}
