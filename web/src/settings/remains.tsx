import { Checkbox, Stack, Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import type { Member, Remains } from '../answers.ts';
import { api } from '../api.ts';
import { useIsOwner } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { RowButton } from '../ui/actions/row-button.tsx';
import { useQuestion } from '../ui/actions/use-question.tsx';
import { type Column, RowName, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { visible } from '../ui/text/visible.ts';
import { useAnswer } from '../use-answer.ts';

type Person = Pick<Member, 'id' | 'name' | 'email'>;

export const nameOf = ({ id, name, email }: Person) => visible(name ?? email ?? id);

const counted = (count: number, what: string) =>
  count === 0 ? [] : [count === 1 ? `one ${what}` : `${count} ${what}s`];

/** Formats keys and models: "2 API keys and one model". Empty if there are none. */
export function accessText(keys: number, models: number): string {
  return [...counted(keys, 'API key'), ...counted(models, 'model')].join(' and ');
}

type Ended = { revoked_key_count: number; deleted_models: string[]; withdrawn_invitations: string[] };

const endedText = ({ revoked_key_count, deleted_models, withdrawn_invitations }: Ended) =>
  [
    ...counted(revoked_key_count, 'API key').map((text) => `revoked ${text}`),
    ...counted(deleted_models.length, 'model').map((text) => `deleted ${text}`),
    ...counted(withdrawn_invitations.length, 'invitation').map((text) => `withdrew ${text}`),
  ].join(' and ');

const hasAccess = ({ key_count, models, invitations }: Remains) => key_count + models.length + invitations.length > 0;

/** Lists everything that a person created, one line per kind. `onlyAccess` shows only what gives access. */
function RemainsList({ of, onlyAccess = false }: { of: Remains; onlyAccess?: boolean }) {
  const lines: [label: string, names: string[], count: number][] = [
    ['API keys', of.keys.map(({ name }) => name), of.key_count],
    ['Models', of.models, of.models.length],
    ['Invitations', of.invitations, of.invitations.length],
    ['Webhooks', of.webhooks.map(({ origin }) => origin), of.webhooks.length],
    ['Servers', of.servers, of.server_count],
    ['Secrets', of.secrets.map(({ server, name }) => `${server}/${name}`), of.secret_count],
  ];
  return (
    <Stack gap={2} component="ul" m={0} p={0} style={{ listStyle: 'none' }}>
      {lines
        .slice(0, onlyAccess ? 3 : undefined)
        .filter(([, , count]) => count > 0)
        .map(([label, names, count]) => (
          <Text key={label} size="sm" component="li" style={{ overflowWrap: 'anywhere' }}>
            <Text span c="dimmed" size="sm">
              {label}:
            </Text>{' '}
            {shortList(names, count)}
          </Text>
        ))}
    </Stack>
  );
}

const mostShown = 5;

function shortList(names: readonly string[], count: number): string {
  const shown = names.slice(0, mostShown).map(visible);
  return [...shown, ...(count > shown.length ? [`${count - shown.length} more`] : [])].join(', ');
}

/** Asks for confirmation before removing a member, with a choice to end their remaining access. */
export function useRemoval() {
  const [ends, setEnds] = useState(false);
  return useQuestion({
    title: (member: Member) => `Remove ${nameOf(member)}?`,
    text: (member) => (
      <Stack gap="xs">
        <div>
          Their sessions and email notifications in this workspace end immediately, and their agents are logged out.
        </div>
        <MadeBy member={member} ends={ends} onChange={setEnds} />
      </Stack>
    ),
    action: 'Remove member',
    run: ({ id }) => api('removeMember', { id, end_remains: ends }),
    done: (left) => ['Removed the member', ...[endedText(left)].filter((text) => text !== '')].join(', '),
    refresh: [queryKeys.members, queryKeys.keys, queryKeys.models, queryKeys.webhooks],
  });
}

type MadeProps = { member: Member; ends: boolean; onChange: (ends: boolean) => void };

/** Shows everything that a member created, with a choice to end what gives access. */
function MadeBy({ member: { id }, ends, onChange }: MadeProps) {
  const query = useAnswer(queryKeys.remainsOf(id), 'listRemains', { id });
  // Resets the choice for the next removal.
  useEffect(() => () => onChange(false), [onChange]);
  return (
    <Loaded query={query}>
      {({ people }) =>
        people.map((made) => (
          <Stack gap="xs" key={made.id}>
            {hasMade(made) && <div>What they created stays, and they may know its credentials:</div>}
            <RemainsList of={made} />
            {made.webhooks.length > 0 && <div>Their webhooks are paused until a member confirms them.</div>}
            {made.invitations.length > 0 && <div>Their invitations are on hold until an owner confirms them.</div>}
            {hasAccess(made) && (
              <Checkbox
                label="Revoke keys, delete models, withdraw invitations"
                description="Scripts and clients that use them are rejected within 2 seconds."
                checked={ends}
                onChange={(event) => onChange(event.currentTarget.checked)}
              />
            )}
          </Stack>
        ))
      }
    </Loaded>
  );
}

const hasMade = (made: Remains) => hasAccess(made) || made.webhooks.length + made.server_count + made.secret_count > 0;

type Left = Remains & Person;

const columns: Column<Left>[] = [
  {
    label: 'Person',
    cell: (person) => <RowName name={nameOf(person)}>{person.name && visible(person.email ?? '')}</RowName>,
  },
  {
    label: 'Remaining access',
    cell: ({ key_count: keys, models, webhooks, invitations }) =>
      [
        ...counted(keys, 'API key'),
        ...counted(models.length, 'model'),
        ...counted(webhooks.length, 'webhook'),
        ...counted(invitations.length, 'invitation'),
      ].join(', '),
  },
];

/** Former members and their remaining access. */
export function LeftSection() {
  const isOwner = useIsOwner();
  const query = useAnswer(queryKeys.remains, 'listRemains', {});
  const end = useQuestion({
    title: (person: Left) => `End access of ${nameOf(person)}?`,
    text: (person) => (
      <Stack gap="xs">
        <div>
          Their API keys are revoked, their models are deleted, and their invitations are withdrawn. Scripts and clients
          that use them are rejected within 2 seconds.{' '}
        </div>
        <RemainsList of={person} onlyAccess />
      </Stack>
    ),
    action: 'End access',
    run: ({ id }) => api('endRemains', { id }),
    done: (ended) => endedText(ended).replace(/^./, (letter) => letter.toUpperCase()),
    refresh: [queryKeys.members, queryKeys.keys, queryKeys.models],
  });
  const actions = (person: Left) => (
    <>
      {person.webhooks.length > 0 && <RowButton label="Webhooks" of={`of ${nameOf(person)}`} to="/notifications" />}
      {isOwner && hasAccess(person) && (
        <RowButton label="End access" of={`of ${nameOf(person)}`} onClick={() => end.ask(person)} />
      )}
    </>
  );
  return (
    <Loaded query={query} loading={false}>
      {({ people }) =>
        people.length > 0 && (
          <Section
            title="Former members"
            text="What they created and can still use. Webhooks are paused until a member confirms them, invitations until an owner does."
            flush
          >
            <Rows label="Former members" columns={columns} rows={people} keyOf={({ id }) => id} actions={actions} />
            {end.dialog}
          </Section>
        )
      }
    </Loaded>
  );
}
