import { Badge, Button, Checkbox, Group, Select, Stack, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useEffect, useState } from 'react';
import type { Invitation, Member, Role, Workspace } from '../answers.ts';
import { api } from '../api.ts';
import { basePath } from '../base-path.ts';
import { useIsOwner, useSession } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { isSame, refusalText } from '../ui/actions/refusal.ts';
import { RowButton } from '../ui/actions/row-button.tsx';
import { useAction } from '../ui/actions/use-action.ts';
import { useQuestion } from '../ui/actions/use-question.tsx';
import { type Column, RowName, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { messageOf } from '../ui/states/problem-alert.tsx';
import { Hint } from '../ui/text/hint.tsx';
import { usePeople } from '../ui/text/person-name.tsx';
import { Time } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';
import { useAnswer } from '../use-answer.ts';

const roles = [
  { value: 'owner', label: 'Owner' },
  { value: 'editor', label: 'Editor' },
  { value: 'viewer', label: 'Viewer' },
];

const nameOf = ({ id, name, email }: Member) => visible(name ?? email ?? id);

function keysText(count: number): string {
  return count === 1 ? 'one API key' : `${count} API keys`;
}

/** A member, or somebody who was invited and has not come yet. */
type Person = Member | Invitation;

/** Members of the workspace and invitations. */
export function MembersSection() {
  const isOwner = useIsOwner();
  const { user, workspace } = useSession();
  const people = usePeople();
  const removal = useRemoval();
  const leaving = useQuestion({
    title: ({ name }: Workspace) => `Leave ${visible(name)}?`,
    text: () =>
      'The logins of your agents in this workspace end at once. Servers and API keys that you made stay here. Only an owner can let you in again.',
    action: 'Leave workspace',
    run: () => api('leaveWorkspace', {}),
    onDone: () => location.assign(`${basePath}/`),
  });
  const withdraw = useAction({
    run: ({ email }: Invitation) => api('withdrawInvitation', { email }),
    done: (_, { email }) => `Withdrew the invitation of ${visible(email)}`,
    refresh: [queryKeys.members],
    toastFailure: true,
  });
  const columns: Column<Person>[] = [
    { label: 'Member', cell: (person) => <Name person={person} /> },
    {
      label: 'Role',
      cell: (person) =>
        'id' in person && isOwner ? (
          <RoleChoice member={person} />
        ) : (
          roles.find(({ value }) => value === person.role)?.label
        ),
    },
    { label: 'Since', cell: ({ created_at }) => <Time at={created_at} /> },
  ];
  const actionsFor = (members: readonly Member[]) => (person: Person) => {
    if (!('id' in person))
      return (
        isOwner && <RowButton label="Withdraw" of={visible(person.email)} onClick={() => withdraw.mutate(person)} />
      );
    if (person.id !== user.id)
      return isOwner && <RowButton label="Remove" of={nameOf(person)} onClick={() => removal.ask(person)} />;
    // The only owner cannot leave.
    const canLeave = !isOwner || members.some(({ id, role }) => id !== user.id && role === 'owner');
    return canLeave && <RowButton label="Leave" onClick={() => leaving.ask(workspace)} />;
  };
  return (
    <Section title="Members" text="Owners do everything, editors everything but members, viewers only read." flush>
      <Loaded query={people}>
        {({ members, invitations }) => (
          <Rows<Person>
            label="Members"
            columns={columns}
            rows={[...members, ...invitations]}
            keyOf={(person) => ('id' in person ? person.id : person.email)}
            actions={actionsFor(members)}
          />
        )}
      </Loaded>
      {isOwner && <InviteForm />}
      {leaving.dialog}
      {removal.dialog}
    </Section>
  );
}

function Name({ person }: { person: Person }) {
  const { user } = useSession();
  if (!('id' in person)) return <RowName name={visible(person.email)}>invited</RowName>;
  return (
    <RowName
      name={
        <>
          {nameOf(person)} {person.id === user.id && <Badge color="gray">you</Badge>}
        </>
      }
    >
      {visible(person.email ?? '')}
    </RowName>
  );
}

function RoleChoice({ member }: { member: Member }) {
  const change = useAction({
    run: (role: Role) => api('changeMember', { id: member.id, role }),
    done: ({ key_count: keys }, role) =>
      role === 'viewer' && keys > 0
        ? `The role is viewer now; ${keysText(keys)} that they made still ${keys === 1 ? 'works' : 'work'}`
        : `The role is ${role} now`,
    refresh: [queryKeys.members, queryKeys.session],
  });
  return (
    <Select
      aria-label={`Role of ${nameOf(member)}`}
      data={roles}
      value={member.role}
      onChange={(role) => role && change.mutate(role as Role)}
      allowDeselect={false}
      error={change.error && messageOf(change.error)}
      size="xs"
      maw={change.error ? 260 : 110}
    />
  );
}

function InviteForm() {
  const form = useForm<{ email: string; role: Role }>({ initialValues: { email: '', role: 'editor' } });
  const invite = useAction({
    run: (invited: typeof form.values) => api('inviteMember', invited),
    done: ({ email }) => `Invited ${visible(email)}`,
    refresh: [queryKeys.members],
    onDone: (_, sent) => isSame(sent, form.getValues()) && form.reset(),
  });
  return (
    <form
      onSubmit={form.onSubmit((values) => invite.mutate(values))}
      noValidate
      style={{ borderTop: '1px solid var(--th-line)' }}
    >
      <Group gap="sm" p="md" align="flex-start">
        <TextInput
          label="Invite by e-mail address"
          placeholder="name@example.com"
          type="email"
          flex="1 1 14rem"
          maw={360}
          {...form.getInputProps('email')}
          error={refusalText(invite, form.values)}
          autoComplete="off"
        />
        <Group gap="sm" wrap="nowrap" align="flex-end">
          <Select label="Role" data={roles} allowDeselect={false} w={120} {...form.getInputProps('role')} />
          <Button type="submit" variant="default" loading={invite.isPending}>
            Invite
          </Button>
        </Group>
      </Group>
      <Hint size="xs" px="md" pb="md">
        No mail is sent: tell them to sign in here with that address, and they join.
      </Hint>
    </form>
  );
}

/** Asks before a member is removed, and whether to revoke the keys that they made. */
function useRemoval() {
  const [revokes, setRevokes] = useState(false);
  return useQuestion({
    title: (member: Member) => `Remove ${nameOf(member)}?`,
    text: (member) => (
      <Stack gap="xs">
        Their sessions in this workspace and the logins of their agents end at once. Servers that they made stay.
        <KeysOf member={member} revokes={revokes} onChange={setRevokes} />
      </Stack>
    ),
    action: 'Remove member',
    run: ({ id }) => api('removeMember', { id, revoke_keys: revokes }),
    done: ({ revoked_key_count: count }) => `Removed the member${count === 0 ? '' : ` and revoked ${keysText(count)}`}`,
    refresh: [queryKeys.members, queryKeys.keys],
  });
}

type KeysProps = { member: Member; revokes: boolean; onChange: (revokes: boolean) => void };

/** The keys that would go on working, and a choice to revoke them. */
function KeysOf({ member: { id }, revokes, onChange }: KeysProps) {
  const made = useAnswer(queryKeys.keysMadeBy(id), 'listApiKeys', { made_by: id, limit: 200 });
  // Nothing is chosen for the next one who is removed.
  useEffect(() => () => onChange(false), [onChange]);
  const keys = made.data?.keys ?? [];
  if (keys.length === 0) return null;
  return (
    <>
      <span>
        They made {keysText(keys.length)} that still {keys.length === 1 ? 'works' : 'work'}, and may have a copy:{' '}
        {keys.map(({ name }) => visible(name)).join(', ')}.
      </span>
      <Checkbox
        label={`Revoke ${keys.length === 1 ? 'it' : 'them'} too`}
        description="Scripts and clients that use such a key are refused within two seconds."
        checked={revokes}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    </>
  );
}
