import { Button, Center, Stack } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { Link } from 'react-router';
import { JoinedNotice } from '../../frame/joined-notice.tsx';
import { useCanEdit } from '../../frame/session.ts';
import { PageHeader } from '../../ui/page-header.tsx';
import { Loaded } from '../../ui/states/loaded.tsx';
import { FirstServer } from '../new/first-server.tsx';
import { useServerPages } from '../server-queries.ts';
import { DeletedServers } from './deleted-servers.tsx';
import { ServerList } from './server-list.tsx';

export function ServersPage() {
  const pages = useServerPages();
  const canEdit = useCanEdit();
  return (
    <>
      <PageHeader
        title="Servers"
        text="Each server makes tools of an HTTP API and has one address for every MCP client."
      >
        {canEdit && (
          <Button component={Link} to="/servers/new" leftSection={<IconPlus size={16} />}>
            New server
          </Button>
        )}
      </PageHeader>
      <JoinedNotice />
      <Loaded query={pages}>
        {({ pages: answers, pageParams }) => {
          const servers = answers.flatMap((page) => page.servers);
          if (servers.length === 0) return <FirstServer />;
          return (
            <Stack>
              <ServerList servers={servers} cursors={pageParams as (string | undefined)[]} />
              {pages.hasNextPage && (
                <Center>
                  <Button variant="default" loading={pages.isFetchingNextPage} onClick={() => pages.fetchNextPage()}>
                    Show more servers
                  </Button>
                </Center>
              )}
            </Stack>
          );
        }}
      </Loaded>
      <DeletedServers />
    </>
  );
}
