import { Checkbox, Stack, Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import { api } from '../api.ts';
import type { Member, MemberAccess } from '../api-types.ts';
import { useIsOwner } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { RowButton } from '../ui/actions/row-button.tsx';
import { useConfirmation } from '../ui/actions/use-confirmation.tsx';
import { type Column, RowName, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { useOperationQuery } from '../use-operation-query.ts';

type Person = Pick<Member, 'id' | 'name' | 'email'>;

export const formatName = ({ id, name, email }: Person) => toVisible(name ?? email ?? id);

/** Returns the count with the noun, or nothing for zero. */
const pluralize = (count: number, noun: string) =>
  count === 0 ? [] : [count === 1 ? `one ${noun}` : `${count} ${noun}s`];

/** Formats keys and models: "2 API keys and one model". Empty if there are none. */
export function formatAccess(keys: number, models: number): string {
  return [...pluralize(keys, 'API key'), ...pluralize(models, 'model')].join(' and ');
}

type EndedAccess = { revoked_key_count: number; deleted_models: string[]; revoked_invitations: string[] };

const formatEndedAccess = ({ revoked_key_count, deleted_models, revoked_invitations }: EndedAccess) =>
  [
    ...pluralize(revoked_key_count, 'API key').map((text) => `revoked ${text}`),
    ...pluralize(deleted_models.length, 'model').map((text) => `deleted ${text}`),
    ...pluralize(revoked_invitations.length, 'invitation').map((text) => `withdrew ${text}`),
  ].join(' and ');

const hasAccess = ({ key_count, models, invitations }: MemberAccess) =>
  key_count + models.length + invitations.length > 0;

/** Lists everything that a person created, one line per kind. With `isAccessOnly`, only what gives access. */
function AccessList({ access, isAccessOnly = false }: { access: MemberAccess; isAccessOnly?: boolean }) {
  // The first three kinds give access.
  const lines: [label: string, names: string[], count: number][] = [
    ['API keys', access.keys.map(({ name }) => name), access.key_count],
    ['Models', access.models, access.models.length],
    ['Invitations', access.invitations, access.invitations.length],
    ['Webhooks', access.webhooks.map(({ origin }) => origin), access.webhooks.length],
    ['Servers', access.servers, access.server_count],
    ['Secrets', access.secrets.map(({ server, name }) => `${server}/${name}`), access.secret_count],
  ];
  return (
    <Stack gap={2} component="ul" m={0} p={0} style={{ listStyle: 'none' }}>
      {lines
        .slice(0, isAccessOnly ? 3 : undefined)
        .filter(([, , count]) => count > 0)
        .map(([label, names, count]) => (
          <Text key={label} component="li" style={{ overflowWrap: 'anywhere' }}>
            <Text span c="dimmed">
              {label}:
            </Text>{' '}
            {formatNames(names, count)}
          </Text>
        ))}
    </Stack>
  );
}

const maxShown = 5;

function formatNames(names: readonly string[], count: number): string {
  const shown = names.slice(0, maxShown).map(toVisible);
  return [...shown, ...(count > shown.length ? [`${count - shown.length} more`] : [])].join(', ');
}

/** Asks for confirmation before removing a member, with a choice to end their remaining access. */
export function useRemoval() {
  const [shouldEndAccess, setShouldEndAccess] = useState(false);
  return useConfirmation({
    title: (member: Member) => `Remove ${formatName(member)}?`,
    text: (member) => (
      <Stack gap="xs">
        <div>
          Their sessions and email notifications in this workspace end immediately, and their agents are logged out.
        </div>
        <MemberAccessChoice member={member} shouldEndAccess={shouldEndAccess} onChange={setShouldEndAccess} />
      </Stack>
    ),
    action: 'Remove member',
    run: ({ id }) => api('removeMember', { id, revoke_access: shouldEndAccess }),
    toast: (result) => ['Removed the member', ...[formatEndedAccess(result)].filter((text) => text !== '')].join(', '),
    refresh: [queryKeys.members, queryKeys.keys, queryKeys.models, queryKeys.webhooks],
  });
}

type MemberAccessProps = { member: Member; shouldEndAccess: boolean; onChange: (shouldEndAccess: boolean) => void };

/** Shows everything that a member created, with a choice to end what gives access. */
function MemberAccessChoice({ member: { id }, shouldEndAccess, onChange }: MemberAccessProps) {
  const query = useOperationQuery(queryKeys.memberAccessFor(id), 'listMemberAccess', { id });
  // Resets the choice for the next removal.
  useEffect(() => () => onChange(false), [onChange]);
  return (
    <Loaded query={query}>
      {({ people }) =>
        people.map((access) => (
          <Stack gap="xs" key={access.id}>
            {hasCreated(access) && <div>What they created stays, and they may know its credentials:</div>}
            <AccessList access={access} />
            {access.webhooks.length > 0 && <div>Their webhooks are paused until a member confirms them.</div>}
            {access.invitations.length > 0 && <div>Their invitations are on hold until an owner confirms them.</div>}
            {hasAccess(access) && (
              <Checkbox
                label="Revoke keys, delete models, withdraw invitations"
                description="Scripts and clients that use them are rejected within 2 seconds."
                checked={shouldEndAccess}
                onChange={(event) => onChange(event.currentTarget.checked)}
              />
            )}
          </Stack>
        ))
      }
    </Loaded>
  );
}

const hasCreated = (access: MemberAccess) =>
  hasAccess(access) || access.webhooks.length + access.server_count + access.secret_count > 0;

type FormerMember = MemberAccess & Person;

const columns: Column<FormerMember>[] = [
  {
    label: 'Person',
    cell: (person) => <RowName name={formatName(person)}>{person.name && toVisible(person.email ?? '')}</RowName>,
  },
  {
    label: 'Remaining access',
    cell: ({ key_count: keys, models, webhooks, invitations }) =>
      [
        ...pluralize(keys, 'API key'),
        ...pluralize(models.length, 'model'),
        ...pluralize(webhooks.length, 'webhook'),
        ...pluralize(invitations.length, 'invitation'),
      ].join(', '),
  },
];

/** Former members and their remaining access. */
export function FormerMembersSection() {
  const isOwner = useIsOwner();
  const query = useOperationQuery(queryKeys.memberAccess, 'listMemberAccess', {});
  const endAccess = useConfirmation({
    title: (person: FormerMember) => `End access for ${formatName(person)}?`,
    text: (person) => (
      <Stack gap="xs">
        <div>
          Their API keys are revoked, their models are deleted, and their invitations are withdrawn. Scripts and clients
          that use them are rejected within 2 seconds.
        </div>
        <AccessList access={person} isAccessOnly />
      </Stack>
    ),
    action: 'End access',
    run: ({ id }) => api('revokeMemberAccess', { id }),
    toast: (result) => formatEndedAccess(result).replace(/^./, (letter) => letter.toUpperCase()),
    refresh: [queryKeys.members, queryKeys.keys, queryKeys.models],
  });
  const actions = (person: FormerMember) => (
    <>
      {person.webhooks.length > 0 && (
        <RowButton label="Webhooks" subject={`of ${formatName(person)}`} to="/notifications" />
      )}
      {isOwner && hasAccess(person) && (
        <RowButton label="End access" subject={`for ${formatName(person)}`} onClick={() => endAccess.ask(person)} />
      )}
    </>
  );
  return (
    <Loaded query={query} loading={false}>
      {({ people }) =>
        people.length > 0 && (
          <Section
            title="Former members"
            text="Access that former members still have. Their webhooks need the confirmation of a member, and their invitations that of an owner."
            isFlush
          >
            <Rows label="Former members" columns={columns} rows={people} getKey={({ id }) => id} actions={actions} />
            {endAccess.dialog}
          </Section>
        )
      }
    </Loaded>
  );
}
