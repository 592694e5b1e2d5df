import { Button, Group, Select, type SelectProps } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { viewsOf } from '../servers/config.ts';
import { useServer, useServerChoices } from '../servers/server-queries.ts';
import { LateInput } from '../ui/late-input.tsx';
import { visible } from '../ui/text/visible.ts';
import { type CallFilter, isNarrowed, outcomes, periods } from './call-filter.ts';
import { callerKinds } from './caller-text.ts';

type Props = {
  filter: CallFilter;
  /** Whether only the calls of one server are shown. */
  isOfServer: boolean;
  onChange: (name: keyof CallFilter, value: string | null) => void;
  onClear: () => void;
  children: ReactNode;
};

const choicesOf = (words: { [value: string]: string }) =>
  Object.entries(words).map(([value, label]) => ({ value, label }));
const outcomeChoices = choicesOf(outcomes);
const callerChoices = choicesOf(callerKinds);

export function FilterBar({ filter, isOfServer, onChange, onClear, children }: Props) {
  const servers = useServerChoices();
  const [cleared, setCleared] = useState(0);
  const clear = () => {
    setCleared(cleared + 1);
    onClear();
  };
  const keys = useQuery({
    queryKey: [...queryKeys.keys, 'choices'],
    queryFn: async ({ signal }) => (await api('listApiKeys', { limit: 200 }, { signal })).keys,
  });
  const serverChoices = servers.data?.map(({ slug, name }) => ({ value: slug, label: visible(name) })) ?? [];
  const keyChoices = keys.data?.map(({ id, name }) => ({ value: id, label: visible(name) })) ?? [];
  const of = (name: keyof CallFilter, label: string) => ({
    label,
    value: filter[name] ?? null,
    onChange: (value: string | null) => onChange(name, value),
  });
  return (
    <Group gap="sm" mb="md" role="search" aria-label="Filter the calls" align="flex-end">
      {!isOfServer && <Choice {...of('server', 'Server')} data={serverChoices} searchable />}
      <ViewChoice {...of('view', 'View')} server={filter.server} />
      <LateInput
        key={cleared}
        label="Tool"
        placeholder="All"
        value={filter.tool ?? ''}
        onChange={(value) => onChange('tool', value)}
      />
      <Choice {...of('outcome', 'Outcome')} data={outcomeChoices} />
      <Choice {...of('caller', 'Caller')} data={callerChoices} />
      <Choice {...of('key', 'API key')} data={keyChoices} searchable />
      <Choice {...of('period', 'Time')} data={periods} clearable={false} allowDeselect={false} />
      {isNarrowed(filter, isOfServer ? filter.server : undefined) && (
        <Button variant="subtle" color="gray" leftSection={<IconX size={15} />} onClick={clear}>
          Clear
        </Button>
      )}
      {children}
    </Group>
  );
}

/** A filter with some values to choose from; no choice shows everything. */
export function Choice(props: SelectProps) {
  return <Select placeholder="All" clearable className="th-filter" {...props} />;
}

/** The views of the chosen server; nothing where it has none. */
function ViewChoice({ server, ...props }: SelectProps & { server: string | undefined }) {
  const detail = useServer(server);
  const views = new Set(Object.keys(viewsOf(detail.data?.config ?? {})));
  // Calls at a view that is gone are still recorded.
  if (props.value) views.add(props.value);
  if (views.size === 0) return null;
  return <Choice {...props} data={[...views].map((name) => ({ value: name, label: visible(name) }))} searchable />;
}
