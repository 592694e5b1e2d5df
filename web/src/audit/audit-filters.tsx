import { Button, Group, TextInput } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { api } from '../api.ts';
import { Choice } from '../calls/filter-bar.tsx';
import { queryKeys } from '../query-keys.ts';
import { useServerChoices } from '../servers/server-queries.ts';
import { usePeople } from '../ui/text/person-name.tsx';
import { visible } from '../ui/text/visible.ts';
import { texts } from './operation-text.ts';

type Props = {
  get: (name: string) => string | undefined;
  set: (name: string, value: string | null) => void;
  onClear: (() => void) | undefined;
};

const operations = Object.entries(texts).map(([value, label]) => ({ value, label }));

/** Whose changes are shown, which, of what and when. */
export function AuditFilters({ get, set, onClear }: Props) {
  const servers = useServerChoices();
  const actors = useActors(get('who'));
  const choice = (name: string, label: string) => ({
    label,
    value: get(name) ?? null,
    onChange: (value: string | null) => set(name, value),
    searchable: true,
  });
  const day = (name: string, label: string) => (
    <TextInput
      type="date"
      label={label}
      className="th-filter"
      value={get(name) ?? ''}
      onChange={({ currentTarget }) => set(name, currentTarget.value)}
    />
  );
  const slugs = servers.data?.map(({ slug, name }) => ({ value: slug, label: visible(name) })) ?? [];
  const of = get('of');
  const known = of === undefined || slugs.some(({ value }) => value === of) ? [] : [{ value: of, label: visible(of) }];
  return (
    <Group gap="sm" mb="md" role="search" aria-label="Filter the changes" align="flex-end">
      <Choice {...choice('who', 'Who')} data={actors} />
      <Choice {...choice('what', 'What')} data={operations} />
      <Choice {...choice('of', 'Server')} data={[...known, ...slugs]} />
      {day('from', 'From')}
      {day('to', 'To')}
      {onClear && (
        <Button variant="subtle" color="gray" leftSection={<IconX size={15} />} onClick={onClear}>
          Clear
        </Button>
      )}
    </Group>
  );
}

/** People and API keys, by their names. */
function useActors(chosen: string | undefined) {
  const people = usePeople();
  const keys = useQuery({
    queryKey: [...queryKeys.keys, 'managing'],
    queryFn: async ({ signal }) => (await api('listApiKeys', { limit: 200 }, { signal })).keys,
  });
  const managing = keys.data?.filter(({ scopes }) => scopes.some((scope) => scope !== 'call')) ?? [];
  const actors = [
    ...(people.data?.members ?? []).map(({ id, name, email }) => ({ value: id, label: visible(name ?? email ?? id) })),
    ...managing.map(({ id, name }) => ({ value: id, label: `${visible(name)} (API key)` })),
    { value: 'operator', label: 'the operator' },
  ];
  const isKnown = chosen === undefined || actors.some(({ value }) => value === chosen);
  return isKnown ? actors : [{ value: chosen, label: visible(chosen) }, ...actors];
}
