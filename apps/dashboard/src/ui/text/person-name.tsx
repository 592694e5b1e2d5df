import { queryKeys } from '../../query-keys.ts';
import { useOperationQuery } from '../../use-operation-query.ts';
import { toVisible } from './visible.ts';

export function usePeople() {
  return useOperationQuery(queryKeys.members, 'listMembers', {}, { staleTime: 60_000 });
}

/** Display name of a person: the given name, else the member's name or email, else the ID. */
export function PersonName({ id, name }: { id: string; name?: string | undefined }) {
  const { data } = usePeople();
  const member = data?.members.find((candidate) => candidate.id === id);
  if (id === 'operator') return <span title="On the machine of the service">the command line</span>;
  return <span title={toVisible(id)}>{toVisible(name ?? member?.name ?? member?.email ?? id)}</span>;
}
