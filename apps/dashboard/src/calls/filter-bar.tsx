import type { SelectProps } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { queryKeys } from '../query-keys.ts';
import { getViews } from '../servers/config.ts';
import { useServer, useServerChoices } from '../servers/server-queries.ts';
import { DebouncedInput } from '../ui/debounced-input.tsx';
import { FilterSelect, Filters } from '../ui/filters.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { useOperationQuery } from '../use-operation-query.ts';
import { type CallFilter, outcomeLabels, periods, type useCallFilter } from './call-filter.ts';
import { callerLabels } from './call-labels.tsx';

const toChoices = (labels: { [value: string]: string }) =>
  Object.entries(labels).map(([value, label]) => ({ value, label }));
const outcomeChoices = toChoices(outcomeLabels);
const callerChoices = toChoices(callerLabels);

type Props = ReturnType<typeof useCallFilter> & {
  /** True if only calls of one server are shown. */
  isSingleServer: boolean;
  children: ReactNode;
};

export function FilterBar({ filter, isNarrowed, isSingleServer, change, clear, children }: Props) {
  const servers = useServerChoices();
  const [clearCount, setClearCount] = useState(0);
  const clearAll = () => {
    setClearCount(clearCount + 1);
    clear();
  };
  const keys = useOperationQuery([...queryKeys.keys, 'choices'], 'listApiKeys', { limit: 200 });
  const serverChoices = servers.map(({ slug, name }) => ({ value: slug, label: toVisible(name) }));
  const keyChoices = keys.data?.keys.map(({ id, name }) => ({ value: id, label: toVisible(name) })) ?? [];
  const getFilterProps = (name: keyof CallFilter, label: string) => ({
    label,
    value: filter[name] ?? null,
    onChange: (value: string | null) => change(name, value),
  });
  return (
    <Filters label="Filter calls" onClear={isNarrowed ? clearAll : undefined} actions={children}>
      {!isSingleServer && <FilterSelect {...getFilterProps('server', 'Server')} data={serverChoices} searchable />}
      <ViewChoice {...getFilterProps('view', 'View')} server={filter.server} />
      <DebouncedInput
        key={clearCount}
        label="Tool"
        placeholder="All"
        value={filter.tool ?? ''}
        onChange={(value) => change('tool', value)}
      />
      <FilterSelect {...getFilterProps('outcome', 'Outcome')} data={outcomeChoices} />
      <FilterSelect {...getFilterProps('caller', 'Caller')} data={callerChoices} />
      <FilterSelect {...getFilterProps('key', 'API key')} data={keyChoices} searchable />
      <FilterSelect {...getFilterProps('period', 'Time')} data={periods} clearable={false} />
    </Filters>
  );
}

/** Choice among the views of the selected server. Renders nothing if it has no views. */
function ViewChoice({ server, ...props }: SelectProps & { server: string | undefined }) {
  const detail = useServer(server);
  const views = new Set(Object.keys(getViews(detail.data?.config ?? {})));
  // Calls through a view that no longer exists are still recorded.
  if (props.value) views.add(props.value);
  if (views.size === 0) return null;
  return (
    <FilterSelect {...props} data={[...views].map((name) => ({ value: name, label: toVisible(name) }))} searchable />
  );
}
