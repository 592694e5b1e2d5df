import { api } from '../api.ts';
import type { RoleGroup } from '../api-types.ts';
import { useIsOwner } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { RowButton } from '../ui/actions/row-button.tsx';
import { useConfirmation } from '../ui/actions/use-confirmation.tsx';
import { type Column, RowName, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { Hint } from '../ui/text/hint.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { useOperationQuery } from '../use-operation-query.ts';
import { formatRole, RoleForm } from './role-form.tsx';

const columns: Column<RoleGroup>[] = [
  { label: 'Group', cell: ({ group }) => <RowName name={toVisible(group)} /> },
  { label: 'Role', narrow: 'end', cell: ({ role }) => formatRole(role) },
];

const changedKeys = [queryKeys.members, queryKeys.roleGroups, queryKeys.session];

/** Roles that members get from their groups at the identity provider. */
export function RoleGroupsSection() {
  const isOwner = useIsOwner();
  const query = useOperationQuery(queryKeys.roleGroups, 'getRoleGroups', {});
  const roleGroups = query.data?.role_groups ?? [];
  const removal = useConfirmation({
    title: ({ group }: RoleGroup) => `Remove the role of ${toVisible(group)}?`,
    text: () => 'Members whose role comes from this group immediately get the role that was set for them.',
    action: 'Remove',
    isReversible: true,
    run: ({ group: removed }: RoleGroup) =>
      api('setRoleGroups', { role_groups: roleGroups.filter(({ group }) => group !== removed) }),
    refresh: changedKeys,
  });
  return (
    <Section
      title="Roles by group"
      text="When members sign in, the highest role of their groups at the identity provider replaces their own role."
      isFlush
    >
      <Loaded query={query}>
        {() =>
          roleGroups.length > 0 ? (
            <Rows<RoleGroup>
              label="Roles by group"
              columns={columns}
              rows={roleGroups}
              getKey={({ group }) => group}
              actions={(entry) =>
                isOwner && (
                  <RowButton label="Remove" subject={toVisible(entry.group)} onClick={() => removal.ask(entry)} />
                )
              }
            />
          ) : (
            <Hint p="md">No group has a role.</Hint>
          )
        }
      </Loaded>
      {isOwner && query.data && (
        <RoleForm
          label="Group"
          roleLabel="Role of the group"
          placeholder="support"
          action="Add"
          hint="Groups add no members. Invite people first."
          run={({ name: group, role }) => api('setRoleGroups', { role_groups: [...roleGroups, { group, role }] })}
          toast={(_, { name, role }) => `Members in ${name} get the role ${role} when they next sign in`}
          refresh={changedKeys}
        />
      )}
      {removal.dialog}
    </Section>
  );
}
