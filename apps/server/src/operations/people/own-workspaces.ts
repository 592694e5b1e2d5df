import { AppError, invalidInputError } from '@toolhost/errors/errors';
import { z } from 'zod';
import { recordChange } from '../../store/changes/follow-changes.ts';
import { deleteWorkspaceContents, findMemberIds } from '../../store/delete-workspace.ts';
import { decodeCursor } from '../../store/page.ts';
import { listPeople } from '../../store/people/members.ts';
import { moveSession } from '../../store/people/sessions.ts';
import { chooseWorkspace } from '../../store/people/users.ts';
import { findSecrets } from '../../store/servers/secrets.ts';
import { listSlugs } from '../../store/servers/servers.ts';
import { findWorkspace } from '../../store/workspaces.ts';
import { programName } from '../../version.ts';
import { canSeePeople } from '../actor-names.ts';
import { findWorkspaceServer } from '../find-server.ts';
import { operation } from '../operation.ts';
import { toIsoTime } from '../shapes.ts';
import { addWorkspace } from './add-workspace.ts';
import { workspaceName } from './workspaces.ts';

const createWorkspace = operation({
  name: 'createWorkspace',
  summary: 'Create a workspace and switch the session to it',
  scope: 'manage:read',
  effect: 'write',
  dashboardRole: 'any',
  isTool: false,
  input: z.strictObject({ name: workspaceName }),
  output: z.object({ id: z.string(), name: z.string() }),
  async run(context, { name }) {
    const { db, actor, now } = context;
    const at = now();
    const id = await addWorkspace(context, { userId: actor.id, name, at });
    await moveSession(db, actor.sessionHash ?? '', id);
    await chooseWorkspace(db, { workspaceId: id, userId: actor.id, at });
    return { id, name };
  },
  audit: (_input, { id, name }) => ({ workspaceId: id, target: id, detail: { name } }),
});

const deleteWorkspace = operation({
  name: 'deleteWorkspace',
  summary: 'Delete the current workspace with its servers, keys, members, and everything else',
  description:
    'Servers and keys stop working immediately, and the slugs of the servers stay reserved. Sessions in the workspace continue in another workspace of the person, or end. This cannot be undone.',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  dashboardRole: 'owner',
  isTool: false,
  input: z.strictObject({ name: z.string().max(100).describe("The workspace's name, as confirmation.") }),
  output: z.object({ deleted: z.string() }),
  async run(context, { name }) {
    const { db, actor } = context;
    const { workspaceId } = actor;
    // In local mode, the workspace is created at each start, for the person at this machine.
    if (!workspaceId.startsWith('wsp_'))
      throw new AppError(
        'conflict',
        'the workspace of local mode cannot be deleted; delete its servers and keys instead',
      );
    if ((await findWorkspace(db, workspaceId))?.name !== name)
      throw invalidInputError([{ path: 'name', message: 'is not the name of this workspace' }]);
    for (const id of await findMemberIds(db, workspaceId)) await recordChange(db, context, 'grant', id);
    await deleteWorkspaceContents(db, workspaceId, context.now());
    await recordChange(db, context, 'workspace', workspaceId);
    return { deleted: workspaceId };
  },
  audit: (_input, { deleted }) => ({ target: deleted }),
});

/** Maximum size of an export, in characters. */
export const maxExportLength = 20_000_000;

const exportWorkspace = operation({
  name: 'exportWorkspace',
  summary: 'Export the servers and members of the workspace as a JSON file',
  description: `Each configuration has the format that createMcpServer accepts, without the values of its secrets. Members have names and email addresses in an export from the dashboard, and only IDs otherwise. An export is limited to ${maxExportLength / 1_000_000} MB; use toolhost export to write larger workspaces as files.`,
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({}),
  output: z.object({ json: z.string().describe('Content of the file. The REST API returns only the file.') }),
  file: { mediaType: 'application/json', name: 'workspace.json', toText: ({ json }) => json },
  async run(context) {
    const { db, actor } = context;
    const workspace = await findWorkspace(db, actor.workspaceId);
    const servers: string[] = [];
    let length = 0;
    let after: { at: number; id: string } | undefined;
    const slugs: string[] = [];
    do {
      const page = await listSlugs(db, actor.workspaceId, undefined, { limit: 200, after });
      slugs.push(...page.rows.map(({ slug }) => slug));
      after = page.next === undefined ? undefined : decodeCursor(page.next);
    } while (after);
    for (const slug of slugs) {
      const server = await findWorkspaceServer(context, slug);
      if (!server) continue;
      const secrets = (await findSecrets(db, server)).map(({ name }) => name);
      const serverJson = JSON.stringify({ configuration: server.config, secrets });
      length += serverJson.length;
      if (length > maxExportLength)
        throw new AppError('tooLarge', `the workspace is too large for this export; use ${programName} export`);
      servers.push(serverJson);
    }
    const { members } = await listPeople(db, actor.workspaceId, { limit: 1000, after: undefined });
    const memberRecords = members.map(({ userId: id, name, email, role }) => {
      return { id, ...(canSeePeople(actor) && { name, email }), role };
    });
    const head = { workspace: { id: actor.workspaceId, name: workspace?.name }, exported_at: toIsoTime(context.now()) };
    // Appends the servers as text, so that each is serialized only once.
    const json = `${JSON.stringify({ ...head, members: memberRecords }).slice(0, -1)},"servers":[${servers.join(',\n')}]}\n`;
    return { json };
  },
});

export const ownWorkspaceOperations = { createWorkspace, deleteWorkspace, exportWorkspace };
