import { TextInput } from '@mantine/core';
import { queryKeys } from '../query-keys.ts';
import { useServerChoices } from '../servers/server-queries.ts';
import { Choice, Filters } from '../ui/filters.tsx';
import { usePeople } from '../ui/text/person-name.tsx';
import { visible } from '../ui/text/visible.ts';
import type { useAddress } from '../ui/use-address.ts';
import { useAnswer } from '../use-answer.ts';
import { texts } from './operation-text.ts';

const operations = Object.entries(texts).map(([value, label]) => ({ value, label }));

type Props = Pick<ReturnType<typeof useAddress>, 'get' | 'set'> & { onClear: (() => void) | undefined };

/** Filters for the audit log: actor, action, server, and dates. */
export function AuditFilters({ get, set, onClear }: Props) {
  const servers = useServerChoices();
  const actors = useActors();
  const choice = (name: string, label: string, data: { value: string; label: string }[]) => {
    const value = get(name) ?? null;
    // Events remain for actors and servers that no longer exist.
    const isKnown = value === null || data.some((one) => one.value === value);
    return (
      <Choice
        label={label}
        data={isKnown ? data : [{ value, label: visible(value) }, ...data]}
        value={value}
        onChange={(chosen) => set(name, chosen)}
        searchable
      />
    );
  };
  const day = (name: string, label: string) => (
    <TextInput
      type="date"
      label={label}
      className="th-filter"
      value={get(name) ?? ''}
      onChange={({ currentTarget }) => set(name, currentTarget.value)}
    />
  );
  return (
    <Filters label="Filter changes" onClear={onClear}>
      {choice('who', 'Actor', actors)}
      {choice('what', 'Action', operations)}
      {choice('of', 'Server', servers.data?.map(({ slug, name }) => ({ value: slug, label: visible(name) })) ?? [])}
      {day('from', 'From')}
      {day('to', 'To')}
    </Filters>
  );
}

/** Returns members, API keys that can manage, and the operator as choices, labeled by name. */
function useActors() {
  const people = usePeople();
  const keys = useAnswer([...queryKeys.keys, 'choices'], 'listApiKeys', { limit: 200 });
  const managing = keys.data?.keys.filter(({ scopes }) => scopes.some((scope) => scope !== 'call')) ?? [];
  return [
    ...(people.data?.members ?? []).map(({ id, name, email }) => ({ value: id, label: visible(name ?? email ?? id) })),
    ...managing.map(({ id, name }) => ({ value: id, label: `${visible(name)} (API key)` })),
    { value: 'operator', label: 'Operator' },
  ];
}
