import { useQuery } from '@tanstack/react-query';
import { api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { visible } from './visible.ts';

export function usePeople() {
  return useQuery({
    queryKey: queryKeys.members,
    queryFn: ({ signal }) => api('listMembers', {}, { signal }),
    staleTime: 60_000,
  });
}

/** A member by name; a key or whoever has left by id. */
export function PersonName({ id }: { id: string }) {
  const { data } = usePeople();
  const member = data?.members.find((candidate) => candidate.id === id);
  if (id === 'operator') return <span title="at the machine itself">the operator</span>;
  return <span title={visible(id)}>{visible(member?.name ?? member?.email ?? id)}</span>;
}
