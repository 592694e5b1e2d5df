import { Anchor, Group, Text, UnstyledButton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import type { Call } from '../answers.ts';
import { api } from '../api.ts';
import { CallDrawer } from '../calls/call-drawer.tsx';
import { queryOf, type useCallFilter } from '../calls/call-filter.ts';
import { OutcomeBadge } from '../calls/outcome-badge.tsx';
import { queryKeys } from '../query-keys.ts';
import { type Column, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { Time } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';

/** Calls that failed for the same reason; the newest one stands for them. */
type Failure = { newest: Call; count: number };

/** Failed calls that are looked at, newest first. */
const mostRead = 200;
const mostShown = 8;

function failuresIn(calls: readonly Call[]): Failure[] {
  const alike = Map.groupBy(calls, ({ server, tool, outcome, upstream_status, reason }) =>
    JSON.stringify([server, tool, outcome, upstream_status, reason]),
  );
  return [...alike.values()].flatMap(([newest, ...others]) => (newest ? [{ newest, count: 1 + others.length }] : []));
}

/** Why calls failed, newest first; each leads to the newest call of its kind. */
export function Failures({ filter, opened, change }: ReturnType<typeof useCallFilter>) {
  const { server, period } = filter;
  const query = useQuery({
    queryKey: queryKeys.calls({ server, period, outcome: 'failed', limit: mostRead }),
    queryFn: async ({ signal }) =>
      (await api('listCalls', { ...queryOf({ ...filter, outcome: 'failed' }), limit: mostRead }, { signal })).calls,
    refetchInterval: 15_000,
  });
  const open = (id: string | undefined) => change('call', id);
  return (
    <Section
      title="What failed"
      flush
      actions={
        <Anchor
          component={Link}
          to={`/calls?${new URLSearchParams({ ...(server && { server }), outcome: 'failed', period })}`}
          size="sm"
        >
          All failed calls
        </Anchor>
      }
    >
      <Loaded query={query}>
        {(calls) => {
          const failures = failuresIn(calls);
          return (
            <>
              {failures.length === 0 ? (
                <Text size="sm" c="dimmed" px="md" pb="md">
                  Nothing in this time.
                </Text>
              ) : (
                <Rows
                  label="What failed"
                  columns={columnsFor(server === undefined, open)}
                  rows={failures.slice(0, mostShown)}
                  keyOf={({ newest }) => newest.id}
                  onOpen={({ newest }) => open(newest.id)}
                />
              )}
              <CallDrawer
                id={opened}
                known={calls.find(({ id }) => id === opened)}
                onClose={() => change('call', undefined)}
              />
            </>
          );
        }}
      </Loaded>
    </Section>
  );
}

function columnsFor(hasServers: boolean, onOpen: (id: string) => void): Column<Failure>[] {
  return [
    {
      label: 'Tool',
      cell: ({ newest }) => (
        <UnstyledButton display="block" onClick={() => onOpen(newest.id)}>
          <Text className="th-mono" size="sm" fw={600}>
            {visible(newest.tool)}
          </Text>
          {hasServers && (
            <Text size="xs" c="dimmed">
              {visible(newest.server)}
            </Text>
          )}
        </UnstyledButton>
      ),
    },
    {
      label: 'Why',
      cell: ({ newest }) => (
        <Group gap={6}>
          <OutcomeBadge call={newest} />
          <Text size="sm" lineClamp={2} maw={420}>
            {newest.reason === undefined ? '' : visible(newest.reason)}
          </Text>
        </Group>
      ),
    },
    { label: 'Calls', end: true, cell: ({ count }) => count.toLocaleString('en') },
    { label: 'Last', end: true, cell: ({ newest }) => <Time at={newest.at} /> },
  ];
}
