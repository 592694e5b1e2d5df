import { useQuery } from '@tanstack/react-query';
import { api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { ToLookAt } from './to-look-at.tsx';

/** What servers need before their calls can work, or to follow their API. */
export function Needs() {
  const { data } = useQuery({
    queryKey: [...queryKeys.servers, 'needs'],
    queryFn: ({ signal }) => api('listNeeds', {}, { signal }),
  });
  const items = data?.servers.map(({ slug, missing_secrets, moved_secrets, description }) => ({
    label: slug,
    text: [
      ...missing_secrets.map((name) => `${name} has no value`),
      ...moved_secrets.map((name) => `${name} was set for another host`),
      ...(description === undefined ? [] : [`its description ${descriptions[description]}`]),
    ].join(', '),
    to: `/servers/${slug}`,
  }));
  return <ToLookAt items={items ?? []} />;
}

const descriptions = { changed: 'has changed', unreadable: 'cannot be read' } as const;
