import { useQuery } from '@tanstack/react-query';
import { api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { Loaded } from '../ui/states/loaded.tsx';
import { ChangeList } from './change-list.tsx';

type Props = { slug: string; from: number; to: number };

/** What has changed from one version of a server to another. */
export function VersionChanges({ slug, from, to }: Props) {
  const query = useQuery({
    queryKey: [...queryKeys.versions(slug), from, to],
    queryFn: async ({ signal }) =>
      (await api('compareVersions', { slug, before: from, version: to }, { signal })).changes,
    // A version never changes.
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Loaded query={query}>
      {(changes) => (
        <ChangeList
          changes={changes}
          signs={{ before: `version ${from}`, after: `version ${to}` }}
          label={`Changes from version ${from} to version ${to}`}
        />
      )}
    </Loaded>
  );
}
