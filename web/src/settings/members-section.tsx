import { Badge, Button, Group, Select, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
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
import { accessText, nameOf, useRemoval } from './remains.tsx';

const roles = [
  { value: 'owner', label: 'Owner' },
  { value: 'editor', label: 'Editor' },
  { value: 'viewer', label: 'Viewer' },
];

/** Member, or invited person who has not joined yet. */
type Person = Member | Invitation;

/** Members of the workspace, and invitations. */
export function MembersSection() {
  const isOwner = useIsOwner();
  const { user, workspace } = useSession();
  const people = usePeople();
  const removal = useRemoval();
  const leaving = useQuestion({
    title: ({ name }: Workspace) => `Leave ${visible(name)}?`,
    text: () =>
      'Your agents are logged out of this workspace immediately, and your webhooks are paused. Servers, API keys, and models that you created stay here. Only an owner can let you in again.',
    action: 'Leave workspace',
    run: () => api('leaveWorkspace', {}),
    onDone: () => location.assign(`${basePath}/`),
  });
  const withdraw = useAction({
    run: ({ email }: Invitation) => api('withdrawInvitation', { email }),
    done: (_, { email }) => `Withdrew the invitation for ${visible(email)}`,
    refresh: [queryKeys.members],
    toastFailure: true,
  });
  const confirm = useAction({
    run: ({ email, role }: Invitation) => api('inviteMember', { email, role }),
    done: (_, { email }) => `Invited ${visible(email)}`,
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
        isOwner && (
          <>
            {person.unconfirmed && (
              <RowButton label="Confirm" of={visible(person.email)} onClick={() => confirm.mutate(person)} />
            )}
            <RowButton label="Withdraw" of={visible(person.email)} onClick={() => withdraw.mutate(person)} />
          </>
        )
      );
    if (person.id !== user.id)
      return isOwner && <RowButton label="Remove" of={nameOf(person)} onClick={() => removal.ask(person)} />;
    // The only owner cannot leave.
    const canLeave = !isOwner || members.some(({ id, role }) => id !== user.id && role === 'owner');
    return canLeave && <RowButton label="Leave" onClick={() => leaving.ask(workspace)} />;
  };
  return (
    <Section
      title="Members"
      text="Owners can do everything. Editors cannot manage members. Viewers can only read."
      flush
    >
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
  if (!('id' in person))
    return (
      <RowName name={visible(person.email)}>
        {person.unconfirmed ? 'invited by someone who is no longer an owner' : 'invited'}
      </RowName>
    );
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
    done: ({ key_count: keys, models }, role) => {
      const count = keys + models.length;
      const still = `, but ${accessText(keys, models.length)} that they created still ${count === 1 ? 'works' : 'work'}`;
      return `The role is now ${role}${role === 'viewer' && count > 0 ? still : ''}`;
    },
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
          label="Invite by email"
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
        No email is sent. Ask them to sign in here with that address to join.
      </Hint>
    </form>
  );
}
