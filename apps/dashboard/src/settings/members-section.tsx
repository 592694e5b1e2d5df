import { Badge, Select } from '@mantine/core';
import { api } from '../api.ts';
import type { Invitation, Member, Role, Workspace } from '../api-types.ts';
import { basePath } from '../base-path.ts';
import { useIsOwner, useSession } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { RowButton } from '../ui/actions/row-button.tsx';
import { useAction } from '../ui/actions/use-action.ts';
import { useConfirmation } from '../ui/actions/use-confirmation.tsx';
import { type Column, RowName, Rows, SecondLine } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { getErrorMessage } from '../ui/states/problem-alert.tsx';
import { usePeople } from '../ui/text/person-name.tsx';
import { Time } from '../ui/text/time.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { formatAccess, formatName, useRemoval } from './member-access.tsx';
import { formatRole, RoleForm, roleOptions } from './role-form.tsx';

/** Member, or invited person who has not joined yet. */
type MemberOrInvitation = Member | Invitation;

export function MembersSection() {
  const isOwner = useIsOwner();
  const { user, workspace } = useSession();
  const peopleQuery = usePeople();
  const removal = useRemoval();
  const leave = useConfirmation({
    title: ({ name }: Workspace) => `Leave ${toVisible(name)}?`,
    text: () =>
      'Your agents are logged out of this workspace immediately, and your webhooks are paused. Servers, API keys, and models that you created stay here. Only an owner can invite you back.',
    action: 'Leave workspace',
    run: () => api('leaveWorkspace', {}),
    onSuccess: () => location.assign(`${basePath}/`),
  });
  const withdraw = useAction({
    run: ({ email }: Invitation) => api('revokeInvitation', { email }),
    toast: (_, { email }) => `Withdrew the invitation for ${toVisible(email)}`,
    refresh: [queryKeys.members],
    toastFailure: true,
  });
  const confirm = useAction({
    run: ({ email, role }: Invitation) => api('inviteMember', { email, role }),
    toast: (_, { email }) => `Confirmed the invitation for ${toVisible(email)}`,
    refresh: [queryKeys.members],
    toastFailure: true,
  });
  const columns: Column<MemberOrInvitation>[] = [
    { label: 'Member', cell: (person) => <MemberName person={person} /> },
    {
      label: 'Role',
      narrow: 'end',
      cell: (person) =>
        'id' in person && isOwner && person.role_group === undefined ? (
          <RoleChoice member={person} />
        ) : (
          <RoleText person={person} />
        ),
    },
    { label: 'Since', cell: ({ created_at }) => <Time at={created_at} /> },
  ];
  const createActions = (members: readonly Member[]) => (person: MemberOrInvitation) => {
    if (!('id' in person))
      return (
        isOwner && (
          <>
            {person.unconfirmed && (
              <RowButton label="Confirm" subject={toVisible(person.email)} onClick={() => confirm.mutate(person)} />
            )}
            <RowButton label="Withdraw" subject={toVisible(person.email)} onClick={() => withdraw.mutate(person)} />
          </>
        )
      );
    if (person.id !== user.id)
      return isOwner && <RowButton label="Remove" subject={formatName(person)} onClick={() => removal.ask(person)} />;
    // The only owner cannot leave.
    const canLeave = !isOwner || members.some(({ id, role }) => id !== user.id && role === 'owner');
    return canLeave && <RowButton label="Leave" onClick={() => leave.ask(workspace)} />;
  };
  return (
    <Section
      title="Members"
      text="Owners can do everything. Editors cannot manage members. Viewers can only read."
      isFlush
    >
      <Loaded query={peopleQuery}>
        {({ members, invitations }) => (
          <Rows<MemberOrInvitation>
            label="Members"
            columns={columns}
            rows={[...members, ...invitations]}
            getKey={(person) => ('id' in person ? person.id : person.email)}
            actions={createActions(members)}
          />
        )}
      </Loaded>
      {isOwner && <InviteForm />}
      {leave.dialog}
      {removal.dialog}
    </Section>
  );
}

function MemberName({ person }: { person: MemberOrInvitation }) {
  const { user } = useSession();
  if (!('id' in person))
    return (
      <RowName name={toVisible(person.email)}>
        {person.unconfirmed ? 'invited by someone who is no longer an owner' : 'invited'}
      </RowName>
    );
  return (
    <RowName
      name={
        <>
          {formatName(person)} {person.id === user.id && person.name !== 'You' && <Badge>You</Badge>}
        </>
      }
    >
      {toVisible(person.email ?? '')}
    </RowName>
  );
}

function RoleText({ person }: { person: MemberOrInvitation }) {
  const group = 'role_group' in person ? person.role_group : undefined;
  return (
    <>
      {formatRole(person.role)}
      {group !== undefined && <SecondLine>by group {toVisible(group)}</SecondLine>}
    </>
  );
}

function RoleChoice({ member }: { member: Member }) {
  const change = useAction({
    run: (role: Role) => api('updateMember', { id: member.id, role }),
    toast: ({ key_count: keys, models }, role) => {
      const count = keys + models.length;
      const accessNote = `, but ${formatAccess(keys, models.length)} that they created still ${count === 1 ? 'works' : 'work'}`;
      return `The role is now ${role}${role === 'viewer' && count > 0 ? accessNote : ''}`;
    },
    refresh: [queryKeys.members, queryKeys.session],
  });
  return (
    <Select
      aria-label={`Role of ${formatName(member)}`}
      data={roleOptions}
      value={member.role}
      onChange={(role) => role && change.mutate(role as Role)}
      error={change.error && getErrorMessage(change.error)}
      size="xs"
      maw={change.error ? 260 : 110}
    />
  );
}

function InviteForm() {
  return (
    <RoleForm
      type="email"
      label="Invite by email"
      roleLabel="Role"
      placeholder="name@example.com"
      action="Invite"
      hint="No email is sent. Ask them to sign in here with that address to join."
      run={({ name: email, role }) => api('inviteMember', { email, role })}
      toast={(_, { name: email }) => `Invited ${toVisible(email)}`}
      refresh={[queryKeys.members]}
    />
  );
}
