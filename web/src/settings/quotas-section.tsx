import { useQuery } from '@tanstack/react-query';
import type { Quotas } from '../answers.ts';
import { api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { type Column, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Loaded } from '../ui/states/loaded.tsx';

const names: [name: keyof Quotas, label: string][] = [
  ['servers', 'Servers'],
  ['slugs', 'Slugs, with those of deleted servers'],
  ['tools', 'Tools of a server'],
  ['megabytes', 'Configurations with their versions, MB'],
  ['versions', 'Versions kept of a server'],
  ['secrets', 'Secrets'],
  ['keys', 'API keys that work'],
  ['members', 'Members and invitations'],
  ['writes', 'Changes a minute'],
  ['dailywrites', 'Changes a day'],
];

type Row = { name: string; label: string; limit: number | undefined; used: number | undefined };

const number = (value: number | undefined, absent: string) => value?.toLocaleString('en') ?? absent;

const columns: Column<Row>[] = [
  { label: 'Quota', cell: ({ label }) => label },
  { label: 'Used', cell: ({ used }) => number(used, '–'), end: true },
  { label: 'Allowed', cell: ({ limit }) => number(limit, 'any number'), end: true },
];

/** The quotas of the workspace and their use. */
export function QuotasSection() {
  const query = useQuery({
    queryKey: queryKeys.quotas,
    queryFn: ({ signal }) => api('getWorkspaceQuotas', {}, { signal }),
  });
  return (
    <Section title="Quotas" text="What is above them is refused. The operator of the service sets them." flush>
      <Loaded query={query}>
        {(quotas) => (
          <Rows
            label="Quotas"
            columns={columns}
            rows={names.map(([name, label]) => ({ name, label, limit: quotas[name].limit, used: quotas[name].used }))}
            keyOf={({ name }) => name}
          />
        )}
      </Loaded>
    </Section>
  );
}
