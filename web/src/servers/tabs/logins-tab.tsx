import { Badge, Text } from '@mantine/core';
import { IconLogin2 } from '@tabler/icons-react';
import type { Grant } from '../../answers.ts';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { RowButton } from '../../ui/actions/row-button.tsx';
import { useQuestion } from '../../ui/actions/use-question.tsx';
import { type Column, Rows } from '../../ui/rows.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty } from '../../ui/states/empty.tsx';
import { Loaded } from '../../ui/states/loaded.tsx';
import { Time } from '../../ui/text/time.tsx';
import { visible } from '../../ui/text/visible.ts';
import { useAnswer } from '../../use-answer.ts';
import { useShownServer } from '../server-page.tsx';

const colors = { active: 'green', broken: 'yellow', revoked: 'gray' } as const;

const columns: Column<Grant>[] = [
  { label: 'Person', cell: ({ person }) => (person ? visible(person) : '–') },
  { label: 'Client', cell: ({ client }) => visible(client) },
  { label: 'Status', cell: ({ status }) => <Badge color={colors[status]}>{status}</Badge> },
  { label: 'Scopes', cell: ({ scope }) => <Text className="th-mono">{visible(scope) || '–'}</Text> },
  { label: 'Since', cell: ({ created_at }) => <Time at={created_at} /> },
  { label: 'Last used', cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : 'never') },
];

/** Logins of people at this server, with an action to revoke one. */
export function LoginsTab() {
  const { slug } = useShownServer().server;
  const canEdit = useCanEdit();
  const query = useAnswer(queryKeys.grants(slug), 'listGrants', { slug, limit: 200 });
  const end = useQuestion({
    title: () => 'Revoke this login?',
    text: ({ client }) => `The client ${visible(client)} must ask the person to log in again.`,
    action: 'Revoke login',
    run: ({ id }: Grant) => api('revokeGrant', { id }),
    done: () => 'Revoked the login',
    refresh: [queryKeys.grants(slug)],
  });
  return (
    <Section
      title="Logins"
      text="Each login is one person in one client. A broken login no longer works at the provider, and the person must log in again."
      flush
    >
      <Loaded query={query}>
        {({ grants }) =>
          grants.length === 0 ? (
            <Empty
              icon={<IconLogin2 size={24} />}
              title="No logins yet"
              text="They appear when people connect a client and log in."
            />
          ) : (
            <Rows
              label="Logins"
              columns={columns}
              rows={grants}
              keyOf={({ id }) => id}
              actions={
                canEdit &&
                ((grant) =>
                  grant.status !== 'revoked' && (
                    <RowButton label="Revoke login" of={`of ${visible(grant.client)}`} onClick={() => end.ask(grant)} />
                  ))
              }
            />
          )
        }
      </Loaded>
      {end.dialog}
    </Section>
  );
}
