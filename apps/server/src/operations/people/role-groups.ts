import { type Role, roles } from '@toolhost/credentials/credential';
import { AppError, invalidInputError } from '@toolhost/errors/errors';
import { singleLineText } from '@toolhost/tool-config/tool';
import { z } from 'zod';
import { hasOtherOwner } from '../../store/people/members.ts';
import { listRoleGroups, maxGroupLength, maxRoleGroups, replaceRoleGroups } from '../../store/people/role-groups.ts';
import { operation } from '../operation.ts';
import { nameSchema } from '../schema-names.ts';
import { isUnchanged, unchangedShape } from '../shapes.ts';

const roleGroup = z.strictObject({
  group: singleLineText(maxGroupLength).describe(
    'Group of the identity provider: an exact value of the claim that OIDC_GROUPS_CLAIM names.',
  ),
  role: z.enum(roles).describe('Role of the members in this group.'),
});
nameSchema('RoleGroup', roleGroup);
const roleGroupList = z.array(roleGroup).max(maxRoleGroups);

const getRoleGroups = operation({
  name: 'getRoleGroups',
  summary: 'List the roles by group of the workspace',
  scope: 'manage:read',
  effect: 'read',
  dashboardRole: 'any',
  isTool: false,
  input: z.strictObject({}),
  output: z.object({ role_groups: roleGroupList }),
  run: async ({ db, actor }) => ({ role_groups: await listRoleGroups(db, actor.workspaceId) }),
});

const setRoleGroups = operation({
  name: 'setRoleGroups',
  summary: 'Replace the roles by group of the workspace',
  description:
    'A member in one of the groups has its role, the highest of several, instead of the role that a member gave. The groups are read at each sign-in. A member who leaves all of the groups gets the given role back. Groups make no one a member, and the last owner stays an owner.',
  scope: 'manage:write',
  effect: 'write',
  dashboardRole: 'owner',
  isTool: false,
  input: z.strictObject({ role_groups: roleGroupList }),
  output: z.object({ role_groups: roleGroupList, unchanged: unchangedShape }),
  async run({ db, actor }, { role_groups }) {
    const { workspaceId } = actor;
    const groups = new Set<string>();
    for (const [index, { group }] of role_groups.entries()) {
      if (groups.has(group))
        throw invalidInputError([{ path: `role_groups.${index}.group`, message: 'has a role already; list it once' }]);
      groups.add(group);
    }
    const before = await listRoleGroups(db, workspaceId);
    const rolesBefore = new Map<string, Role>(before.map(({ group, role }) => [group, role]));
    if (before.length === groups.size && role_groups.every(({ group, role }) => rolesBefore.get(group) === role))
      return { role_groups: before, unchanged: true as const };
    await replaceRoleGroups(db, workspaceId, role_groups);
    // No member has an empty ID.
    if (!(await hasOtherOwner(db, workspaceId, '')))
      throw new AppError(
        'conflict',
        'every owner has this role from a group, so the workspace would lose its last owner; make a member an owner first',
      );
    return { role_groups: await listRoleGroups(db, workspaceId) };
  },
  isUnchanged,
  audit: ({ role_groups }) => ({ detail: { role_groups } }),
});

export const roleGroupOperations = { getRoleGroups, setRoleGroups };
