import { Button, Group, Select } from '@mantine/core';
import { IconPlus, IconSearch } from '@tabler/icons-react';
import { Link } from 'react-router';
import { InvitationAlert } from '../../frame/invitation-alert.tsx';
import { useCanEdit } from '../../frame/session.ts';
import { SearchInput } from '../../ui/debounced-input.tsx';
import { PageHeader } from '../../ui/page-header.tsx';
import { PagedList } from '../../ui/paged-list.tsx';
import { Empty } from '../../ui/states/empty.tsx';
import { useUrlState } from '../../ui/use-url-state.ts';
import { FirstServer } from '../new/start-choices.tsx';
import { type Listing, useServerPages } from '../server-queries.ts';
import { DeletedServers } from './deleted-servers.tsx';
import { type Cursors, ServerList } from './server-list.tsx';

const sorts = [
  { value: 'changed', label: 'Recently changed' },
  { value: 'name', label: 'Name' },
];

export function ServersPage() {
  const { get, set, clear } = useUrlState();
  const query = get('query');
  const sort = get('sort') === 'name' ? 'name' : 'changed';
  const listing: Listing = { query, sort };
  const pages = useServerPages(listing);
  const hasNoServers = query === undefined && pages.data?.pages[0]?.servers.length === 0;
  const canEdit = useCanEdit();
  return (
    <>
      <PageHeader
        title="Servers"
        guide="docs/configuration.md"
        text="Each server turns an HTTP API into tools, at one URL for every MCP client."
      >
        {canEdit && (
          <Button component={Link} to="/servers/new" leftSection={<IconPlus size={16} />}>
            New server
          </Button>
        )}
      </PageHeader>
      <InvitationAlert />
      {!hasNoServers && (
        <Group gap="sm" mb="md" role="search" aria-label="Find servers">
          <SearchInput
            aria-label="Search servers by name, slug, or tag"
            placeholder="Name, slug, or tag"
            value={query ?? ''}
            onChange={(value) => set('query', value)}
          />
          <Select
            aria-label="Sort"
            className="th-filter"
            data={sorts}
            value={sort}
            onChange={(value) => set('sort', value)}
          />
        </Group>
      )}
      {hasNoServers ? (
        <FirstServer />
      ) : (
        <PagedList pages={pages} getRows={(page) => page.servers} nextPageLabel="Show more servers">
          {(servers) =>
            servers.length === 0 ? (
              <Empty
                icon={<IconSearch size={24} />}
                title="No matching servers"
                text="Names, slugs, and tags are searched. Use “Find anything” to search tools as well."
              >
                <Button variant="default" onClick={clear}>
                  Show all servers
                </Button>
              </Empty>
            ) : (
              <ServerList servers={servers} listing={listing} cursors={pages.data?.pageParams as Cursors} />
            )
          }
        </PagedList>
      )}
      <DeletedServers />
    </>
  );
}
