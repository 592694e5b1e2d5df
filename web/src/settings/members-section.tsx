import { Badge, Button, Select, Text } from '@mantine/core';
import { useState } from 'react';
import type { Member, Role } from '../answers.ts';
import { api } from '../api.ts';
import { basePath } from '../base-path.ts';
import { useIsOwner, useSession } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { Confirm } from '../ui/actions/confirm.tsx';
import { useAction } from '../ui/actions/use-action.ts';
import { type Column, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { messageOf } from '../ui/states/problem-alert.tsx';
import { usePeople } from '../ui/text/person-name.tsx';
import { Time } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';
import { Invitations, InviteForm } from './invitations.tsx';
import { keysText, RemoveDialog } from './remove-dialog.tsx';
import { roleChoices } from './roles.ts';

/** Members of the workspace and invitations. */
export function MembersSection() {
  const isOwner = useIsOwner();
  const { user } = useSession();
  const people = usePeople();
  const [removed, setRemoved] = useState<Member>();
  const [isLeaving, setLeaving] = useState(false);
  const change = useAction({
    run: ({ id, role }: { id: string; role: Role }) => api('changeMember', { id, role }),
    done: ({ key_count: keys }, { role }) =>
      role === 'viewer' && keys > 0
        ? `The role is viewer now; ${keysText(keys)} that they made still ${keys === 1 ? 'works' : 'work'}`
        : `The role is ${role} now`,
    refresh: [queryKeys.members, queryKeys.session],
  });
  const roleProblem = (id: string) =>
    change.error && change.variables?.id === id ? messageOf(change.error) : undefined;
  /** Undefined for the only owner, who cannot leave. */
  const leaveOf = (members: readonly Member[]) => {
    const hasOther = members.some(({ id, role }) => id !== user.id && role === 'owner');
    return !isOwner || hasOther ? () => setLeaving(true) : undefined;
  };
  const onRole = (id: string, role: Role) => change.mutate({ id, role });
  return (
    <Section title="Members" text="Owners do everything, editors everything but members, viewers only read." flush>
      <Loaded query={people}>
        {({ members, invitations }) => (
          <>
            <Rows
              label="Members"
              columns={columnsFor({
                own: user.id,
                isOwner,
                onRole,
                roleProblem,
                onRemove: setRemoved,
                onLeave: leaveOf(members),
              })}
              rows={members}
              keyOf={({ id }) => id}
            />
            {invitations.length > 0 && <Invitations invitations={invitations} />}
          </>
        )}
      </Loaded>
      {isOwner && <InviteForm />}
      <LeaveDialog opened={isLeaving} onClose={() => setLeaving(false)} />
      <RemoveDialog member={removed} onClose={() => setRemoved(undefined)} />
    </Section>
  );
}

type Choices = {
  /** Id of the person who is signed in. */
  own: string;
  isOwner: boolean;
  onRole: (id: string, role: Role) => void;
  roleProblem: (id: string) => string | undefined;
  onRemove: (member: Member) => void;
  onLeave: (() => void) | undefined;
};

function columnsFor({ own, isOwner, onRole, roleProblem, onRemove, onLeave }: Choices): Column<Member>[] {
  const nameOf = ({ id, name, email }: Member) => visible(name ?? email ?? id);
  return [
    {
      label: 'Member',
      cell: (member) => (
        <div>
          <Text size="sm" fw={600}>
            {nameOf(member)} {member.id === own && <Badge color="gray">you</Badge>}
          </Text>
          <Text size="xs" c="dimmed">
            {visible(member.email ?? '')}
          </Text>
        </div>
      ),
    },
    {
      label: 'Role',
      cell: (member) =>
        isOwner ? (
          <Select
            aria-label={`Role of ${nameOf(member)}`}
            data={roleChoices}
            value={member.role}
            onChange={(role) => role && onRole(member.id, role as Role)}
            allowDeselect={false}
            error={roleProblem(member.id)}
            size="xs"
            maw={roleProblem(member.id) ? 260 : 110}
          />
        ) : (
          member.role
        ),
    },
    { label: 'Since', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      label: 'Actions',
      quiet: true,
      end: true,
      cell: (member) => {
        if (member.id === own) return onLeave && <Action label="Leave" onClick={onLeave} />;
        return isOwner && <Action label="Remove" of={nameOf(member)} onClick={() => onRemove(member)} />;
      },
    },
  ];
}

function Action({ label, of, onClick }: { label: string; of?: string; onClick: () => void }) {
  return (
    <Button
      size="compact-sm"
      variant="default"
      onClick={onClick}
      aria-label={of === undefined ? label : `${label} ${of}`}
    >
      {label}
    </Button>
  );
}

/** Asks before the person who is signed in leaves the workspace. */
function LeaveDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const { workspace } = useSession();
  const leave = useAction({
    run: () => api('leaveWorkspace', {}),
    onDone: () => location.assign(`${basePath}/`),
  });
  return (
    <Confirm
      opened={opened}
      title={`Leave ${visible(workspace.name)}?`}
      action="Leave workspace"
      isPending={leave.isPending}
      error={leave.error}
      onClose={onClose}
      onConfirm={() => leave.mutate(undefined)}
    >
      <Text size="sm">
        The logins of your agents in this workspace end at once. Servers and API keys that you made stay here. Only an
        owner can let you in again.
      </Text>
    </Confirm>
  );
}
