import { Badge, Button, Text } from '@mantine/core';
import { IconLogin2 } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Grant } from '../../answers.ts';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { Confirm } from '../../ui/actions/confirm.tsx';
import { useAction } from '../../ui/actions/use-action.ts';
import { type Column, Rows } from '../../ui/rows.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty } from '../../ui/states/empty.tsx';
import { Loaded } from '../../ui/states/loaded.tsx';
import { Time } from '../../ui/text/time.tsx';
import { visible } from '../../ui/text/visible.ts';
import { useShownServer } from '../server-page.tsx';

const colors = { active: 'green', broken: 'yellow', revoked: 'gray' } as const;

/** The logins of people at this server, and ending one. */
export function LoginsTab() {
  const { slug } = useShownServer().server;
  const canEdit = useCanEdit();
  const [ended, setEnded] = useState<Grant>();
  const query = useQuery({
    queryKey: queryKeys.grants(slug),
    queryFn: ({ signal }) => api('listGrants', { slug, limit: 200 }, { signal }),
  });
  const end = useAction({
    run: (grant: Grant) => api('revokeGrant', { id: grant.id }),
    done: () => 'The login has ended',
    refresh: [queryKeys.grants(slug)],
    onDone: () => setEnded(undefined),
  });
  return (
    <Section
      title="Logins"
      text="Each is one person in one client. A broken one no longer works at the provider: the person has to log in again."
      flush
    >
      <Loaded query={query}>
        {({ grants }) =>
          grants.length === 0 ? (
            <Empty
              icon={<IconLogin2 size={24} />}
              title="No logins yet"
              text="They appear when somebody connects a client and logs in."
            />
          ) : (
            <Rows
              label="Logins"
              columns={columnsFor(canEdit ? setEnded : undefined)}
              rows={grants}
              keyOf={({ id }) => id}
            />
          )
        }
      </Loaded>
      <Confirm
        opened={ended !== undefined}
        title="End this login?"
        action="End login"
        isPending={end.isPending}
        error={end.error}
        onClose={() => setEnded(undefined)}
        onConfirm={() => ended && end.mutate(ended)}
      >
        <Text size="sm">The client {visible(ended?.client ?? '')} has to ask the person to log in again.</Text>
      </Confirm>
    </Section>
  );
}

function columnsFor(onEnd: ((grant: Grant) => void) | undefined): Column<Grant>[] {
  return [
    { label: 'Person', cell: ({ person }) => (person ? visible(person) : '–') },
    { label: 'Client', cell: ({ client }) => visible(client) },
    { label: 'Status', cell: ({ status }) => <Badge color={colors[status]}>{status}</Badge> },
    { label: 'Scopes', cell: ({ scope }) => <Text className="th-mono">{visible(scope) || '–'}</Text> },
    { label: 'Since', cell: ({ created_at }) => <Time at={created_at} /> },
    { label: 'Last used', cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : 'never') },
    ...(onEnd
      ? [
          {
            label: 'Actions',
            quiet: true,
            end: true,
            cell: (grant: Grant) =>
              grant.status === 'revoked' ? null : (
                <Button
                  size="compact-sm"
                  variant="default"
                  onClick={() => onEnd(grant)}
                  aria-label={`End login of ${visible(grant.client)}`}
                >
                  End login
                </Button>
              ),
          },
        ]
      : []),
  ];
}
