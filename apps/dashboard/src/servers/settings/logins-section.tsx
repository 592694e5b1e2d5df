import { Badge, Stack, Text } from '@mantine/core';
import { IconLogin2 } from '@tabler/icons-react';
import { api } from '../../api.ts';
import type { Grant } from '../../api-types.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { RowButton } from '../../ui/actions/row-button.tsx';
import { useConfirmation } from '../../ui/actions/use-confirmation.tsx';
import { type Column, Dash, Rows } from '../../ui/rows.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty } from '../../ui/states/empty.tsx';
import { Loaded } from '../../ui/states/loaded.tsx';
import { Time } from '../../ui/text/time.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { useOperationQuery } from '../../use-operation-query.ts';
import { OwnValuesSection, ProvidedNames } from '../own-values.tsx';
import { useCurrentServer } from '../server-page.tsx';

const statuses = {
  active: (
    <Text span inherit c="dimmed">
      Active
    </Text>
  ),
  broken: <Badge color="yellow">Broken</Badge>,
  revoked: <span className="th-ended">Revoked</span>,
};

const columns: Column<Grant>[] = [
  { label: 'Person', cell: ({ person }) => (person ? toVisible(person) : <Dash />) },
  { label: 'Client', cell: ({ client }) => toVisible(client) },
  { label: 'Status', narrow: 'end', cell: ({ status }) => statuses[status] },
  {
    label: 'Scopes',
    narrow: 'hidden',
    cell: ({ scope }) => <Text className="th-mono">{toVisible(scope) || <Dash />}</Text>,
  },
  { label: 'Since', narrow: 'hidden', cell: ({ created_at }) => <Time at={created_at} /> },
  {
    label: 'Last used',
    narrow: 'labeled',
    cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} isToMinute /> : 'Never'),
  },
];

const providedColumn: Column<Grant> = {
  label: 'Provided',
  narrow: 'hidden',
  cell: ({ provided = [] }) => (provided.length > 0 ? <ProvidedNames provided={provided} /> : <Dash />),
};

/** Logins of people at this server, with an action to revoke one. */
export function LoginsSection() {
  const { slug } = useCurrentServer().server;
  const canEdit = useCanEdit();
  const query = useOperationQuery(queryKeys.grants(slug), 'listGrants', { slug, limit: 200 });
  const revoke = useConfirmation({
    title: () => 'Revoke this login?',
    text: ({ client, provided = [] }) =>
      `The client ${toVisible(client)} must ask the person to log in again.${provided.length > 0 ? ' With the last login of a person, the values that they provided are deleted.' : ''}`,
    action: 'Revoke login',
    run: ({ id }: Grant) => api('revokeGrant', { id }),
    toast: () => 'Revoked the login',
    refresh: [queryKeys.grants(slug)],
  });
  return (
    <Stack gap="md">
      <OwnValuesSection />
      <Section
        title="Logins"
        text="Each login is one person in one client. A broken login no longer works at the provider, and the person must log in again. The last use is shown to the minute."
        isFlush
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
                columns={grants.some(({ provided }) => provided) ? [...columns, providedColumn] : columns}
                rows={grants}
                getKey={({ id }) => id}
                actions={
                  canEdit &&
                  ((grant) =>
                    grant.status !== 'revoked' && (
                      <RowButton
                        label="Revoke login"
                        subject={`of ${toVisible(grant.client)}`}
                        onClick={() => revoke.ask(grant)}
                      />
                    ))
                }
              />
            )
          }
        </Loaded>
        {revoke.dialog}
      </Section>
    </Stack>
  );
}
