import type { SelectProps } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { queryKeys } from '../query-keys.ts';
import { viewsOf } from '../servers/config.ts';
import { useServer, useServerChoices } from '../servers/server-queries.ts';
import { Choice, Filters } from '../ui/filters.tsx';
import { LateInput } from '../ui/late-input.tsx';
import { visible } from '../ui/text/visible.ts';
import { useAnswer } from '../use-answer.ts';
import { type CallFilter, outcomes, periods, type useCallFilter } from './call-filter.ts';
import { callerKinds } from './call-parts.tsx';

const choicesOf = (words: { [value: string]: string }) =>
  Object.entries(words).map(([value, label]) => ({ value, label }));
const outcomeChoices = choicesOf(outcomes);
const callerChoices = choicesOf(callerKinds);

type Props = ReturnType<typeof useCallFilter> & {
  /** True if only calls of one server are shown. */
  isOfServer: boolean;
  children: ReactNode;
};

export function FilterBar({ filter, isNarrowed, isOfServer, change, clear, children }: Props) {
  const servers = useServerChoices();
  const [cleared, setCleared] = useState(0);
  const clearAll = () => {
    setCleared(cleared + 1);
    clear();
  };
  const keys = useAnswer([...queryKeys.keys, 'choices'], 'listApiKeys', { limit: 200 });
  const serverChoices = servers.data?.map(({ slug, name }) => ({ value: slug, label: visible(name) })) ?? [];
  const keyChoices = keys.data?.keys.map(({ id, name }) => ({ value: id, label: visible(name) })) ?? [];
  const of = (name: keyof CallFilter, label: string) => ({
    label,
    value: filter[name] ?? null,
    onChange: (value: string | null) => change(name, value),
  });
  return (
    <Filters label="Filter calls" onClear={isNarrowed ? clearAll : undefined} beside={children}>
      {!isOfServer && <Choice {...of('server', 'Server')} data={serverChoices} searchable />}
      <ViewChoice {...of('view', 'View')} server={filter.server} />
      <LateInput
        key={cleared}
        label="Tool"
        placeholder="All"
        value={filter.tool ?? ''}
        onChange={(value) => change('tool', value)}
      />
      <Choice {...of('outcome', 'Outcome')} data={outcomeChoices} />
      <Choice {...of('caller', 'Caller')} data={callerChoices} />
      <Choice {...of('key', 'API key')} data={keyChoices} searchable />
      <Choice {...of('period', 'Time')} data={periods} clearable={false} allowDeselect={false} />
    </Filters>
  );
}

/** Choice among the views of the selected server. Renders nothing if it has no views. */
function ViewChoice({ server, ...props }: SelectProps & { server: string | undefined }) {
  const detail = useServer(server);
  const views = new Set(Object.keys(viewsOf(detail.data?.config ?? {})));
  // Calls through a view that no longer exists are still recorded.
  if (props.value) views.add(props.value);
  if (views.size === 0) return null;
  return <Choice {...props} data={[...views].map((name) => ({ value: name, label: visible(name) }))} searchable />;
}
