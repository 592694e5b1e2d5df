import { AppError } from '@toolhost/errors/errors';
import { maxLoginFields } from '@toolhost/tool-config/login';
import { z } from 'zod';
import { recordChange } from '../store/changes/follow-changes.ts';
import {
  revokeGrant as endGrant,
  findGrant,
  findGrants,
  getAgreedView,
  type ListedGrant,
} from '../store/logins/grants.ts';
import { deleteUnusedValues, findProvidedNames } from '../store/logins/person-values.ts';
import { canSeePeople } from './actor-names.ts';
import { operation } from './operation.ts';
import { nameSchema } from './schema-names.ts';
import { lastUse, nextCursor, pageInputs, parsePage, slugInput, time, toIsoTime } from './shapes.ts';

const grantRecord = z.object({
  id: z.string(),
  server: z.string().describe('Slug of the server.'),
  view: z
    .string()
    .max(40)
    .optional()
    .describe('View that the login is limited to; absent if it covers the whole server.'),
  client: z.string().describe('Name that the client gave itself.'),
  person: z
    .string()
    .optional()
    .describe(
      'Name of the person who logged in, as given by the provider. Only shown to people in the dashboard. Absent if the provider gave none or the login has ended.',
    ),
  scope: z.string(),
  provided: z
    .array(z.string())
    .max(maxLoginFields)
    .optional()
    .describe('Names of the values that the person stored at the server. The values themselves are never shown.'),
  status: z.enum(['active', 'broken', 'revoked']).describe('With broken, the provider no longer accepts the login.'),
  created_at: time,
  last_used_at: lastUse,
});
nameSchema('Grant', grantRecord);

function toRecord(
  grant: ListedGrant,
  { includesPerson, provided }: { includesPerson: boolean; provided: readonly string[] | undefined },
): z.input<typeof grantRecord> {
  const view = getAgreedView(grant.agreement);
  return {
    id: grant.id,
    server: grant.slug,
    ...(view !== undefined && { view }),
    client: grant.client_name,
    ...(includesPerson && grant.person !== null && { person: grant.person }),
    scope: grant.scope,
    ...(provided && { provided: [...provided] }),
    status: getStatus(grant),
    created_at: toIsoTime(grant.created_at),
    ...(grant.last_used_at !== null && { last_used_at: toIsoTime(grant.last_used_at) }),
  };
}

function getStatus({ revoked_at, broken_at, is_of_deleted }: ListedGrant) {
  if (revoked_at !== null || is_of_deleted === 1) return 'revoked';
  return broken_at === null ? 'active' : 'broken';
}

function toPersonKey({ server_id: serverId, person_id: userId }: Pick<ListedGrant, 'server_id' | 'person_id'>) {
  return userId === null ? [] : [{ serverId, userId }];
}

const listGrants = operation({
  name: 'listGrants',
  summary: 'List the logins of people at hosted servers, newest first',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: true,
  input: z.strictObject({ slug: slugInput.optional(), ...pageInputs }),
  output: z.object({ grants: z.array(grantRecord), next_cursor: nextCursor }),
  async run(context, input) {
    await context.serving?.flushCalls();
    const filter = { slug: input.slug, slugs: context.actor.servers };
    const { rows, next } = await findGrants(context.db, context.actor.workspaceId, filter, parsePage(input));
    const includesPerson = canSeePeople(context.actor);
    const providedNames = await findProvidedNames(context.db, context.actor.workspaceId, rows.flatMap(toPersonKey));
    const toGrant = (row: ListedGrant) =>
      toRecord(row, { includesPerson, provided: providedNames.get(`${row.server_id} ${row.person_id}`) });
    return { grants: rows.map(toGrant), next_cursor: next };
  },
});

const revokeGrant = operation({
  name: 'revokeGrant',
  summary: 'Revoke a login; its agent has to ask the person again',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  isTool: true,
  input: z.strictObject({ id: z.string().max(100).describe('ID of the grant (grt_…).') }),
  output: z.object({ revoked: z.string() }),
  async run(context, { id }) {
    const grant = await findGrant(context.db, id);
    const isInWorkspace = grant?.workspace_id === context.actor.workspaceId;
    if (!isInWorkspace || !(await endGrant(context.db, id, context.now()))) {
      throw new AppError('notFound', 'there is no such grant in this workspace, or it is already revoked');
    }
    await recordChange(context.db, context, 'grant', id);
    const { person_id: userId } = grant;
    if (userId !== null && (await deleteUnusedValues(context.db, { serverId: grant.server_id, userId })))
      await recordChange(context.db, context, 'grant', userId);
    return { revoked: id };
  },
  audit: ({ id }) => ({ target: id }),
});

export const grantOperations = { listGrants, revokeGrant };
