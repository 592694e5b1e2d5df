import { Alert, Anchor, List } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { visible } from '../ui/text/visible.ts';

const mostShown = 6;

/** What servers need before their calls can work, or to follow their API. */
export function Needs() {
  const { data } = useQuery({
    queryKey: [...queryKeys.servers, 'needs'],
    queryFn: ({ signal }) => api('listNeeds', {}, { signal }),
  });
  const servers = data?.servers ?? [];
  if (servers.length === 0) return null;
  return (
    <Alert color="yellow" icon={<IconAlertTriangle size={18} />} title="To look at">
      <List size="sm" spacing={4} listStyleType="none">
        {servers.slice(0, mostShown).map(({ slug, missing_secrets, moved_secrets, description }) => (
          <List.Item key={slug}>
            <Anchor component={Link} to={`/servers/${slug}`} size="sm" underline="always" className="th-mono">
              {visible(slug)}
            </Anchor>
            {': '}
            {[
              ...missing_secrets.map((name) => `${name} has no value`),
              ...moved_secrets.map((name) => `${name} was set for another host`),
              ...(description === undefined ? [] : [`its description ${descriptions[description]}`]),
            ].join(', ')}
          </List.Item>
        ))}
        {servers.length > mostShown && <List.Item>and {servers.length - mostShown} more servers.</List.Item>}
      </List>
    </Alert>
  );
}

const descriptions = { changed: 'has changed', unreadable: 'cannot be read' } as const;
