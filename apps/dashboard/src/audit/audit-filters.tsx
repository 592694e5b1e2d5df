import { TextInput } from '@mantine/core';
import { queryKeys } from '../query-keys.ts';
import { useServerChoices } from '../servers/server-queries.ts';
import { FilterSelect, Filters } from '../ui/filters.tsx';
import { usePeople } from '../ui/text/person-name.tsx';
import { toVisible } from '../ui/text/visible.ts';
import type { useUrlState } from '../ui/use-url-state.ts';
import { useOperationQuery } from '../use-operation-query.ts';
import { operationLabels } from './operation-text.ts';

const operations = Object.entries(operationLabels).map(([value, label]) => ({ value, label }));

type Props = Pick<ReturnType<typeof useUrlState>, 'get' | 'set'> & { onClear: (() => void) | undefined };

/** Filters for the audit log: actor, action, server, and dates. */
export function AuditFilters({ get, set, onClear }: Props) {
  const servers = useServerChoices().map(({ slug, name }) => ({ value: slug, label: toVisible(name) }));
  const actors = useActors();
  const renderChoice = (name: string, label: string, data: { value: string; label: string }[]) => {
    const value = get(name) ?? null;
    // Events remain for actors and servers that no longer exist.
    const isListed = value === null || data.some((choice) => choice.value === value);
    return (
      <FilterSelect
        label={label}
        data={isListed ? data : [{ value, label: toVisible(value) }, ...data]}
        value={value}
        onChange={(next) => set(name, next)}
        searchable
      />
    );
  };
  const renderDate = (name: string, label: string) => (
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
      {renderChoice('who', 'Actor', actors)}
      {renderChoice('what', 'Action', operations)}
      {renderChoice('of', 'Server', servers)}
      {renderDate('from', 'From')}
      {renderDate('to', 'To')}
    </Filters>
  );
}

/** Returns members, API keys that can manage, and the command line as choices, labeled by name. */
function useActors() {
  const members = usePeople();
  const keys = useOperationQuery([...queryKeys.keys, 'choices'], 'listApiKeys', { limit: 200 });
  const managementKeys = keys.data?.keys.filter(({ scopes }) => scopes.some((scope) => scope !== 'call')) ?? [];
  return [
    ...(members.data?.members ?? []).map(({ id, name, email }) => ({
      value: id,
      label: toVisible(name ?? email ?? id),
    })),
    ...managementKeys.map(({ id, name }) => ({ value: id, label: `${toVisible(name)} (API key)` })),
    { value: 'operator', label: 'Command line' },
  ];
}
