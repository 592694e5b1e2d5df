import { Badge, Button, Select, Text } from '@mantine/core';
import { useState } from 'react';
import type { Member, Role } from '../answers.ts';
import { api } from '../api.ts';
import { useIsOwner, useSession } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { type Column, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { messageOf } from '../ui/states/problem-alert.tsx';
import { usePeople } from '../ui/text/person-name.tsx';
import { Time } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';
import { Invitations } from './invitations.tsx';
import { keysText, RemoveDialog } from './remove-dialog.tsx';
import { roleChoices } from './roles.ts';

/** Members of the workspace and invitations. */
export function MembersSection() {
  const isOwner = useIsOwner();
  const { user } = useSession();
  const people = usePeople();
  const [removed, setRemoved] = useState<Member>();
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
  const onRole = (id: string, role: Role) => change.mutate({ id, role });
  return (
    <Section title="Members" text="Owners do everything, editors everything but members, viewers only read." flush>
      <Loaded query={people}>
        {({ members, invitations }) => (
          <>
            <Rows
              label="Members"
              columns={columnsFor({ own: user.id, isOwner, onRole, roleProblem, onRemove: setRemoved })}
              rows={members}
              keyOf={({ id }) => id}
            />
            <Invitations invitations={invitations} />
          </>
        )}
      </Loaded>
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
};

function columnsFor({ own, isOwner, onRole, roleProblem, onRemove }: Choices): Column<Member>[] {
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
      cell: (member) =>
        isOwner && member.id !== own ? (
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => onRemove(member)}
            aria-label={`Remove ${nameOf(member)}`}
          >
            Remove
          </Button>
        ) : null,
    },
  ];
}
