import { z } from 'zod';
import { AppError, invalid } from '../../errors.ts';
import { recordChange } from '../../store/changes/follow-changes.ts';
import { deleteWorkspaceContents, memberIds } from '../../store/delete-workspace.ts';
import { decodeCursor } from '../../store/page.ts';
import { pageOfPeople } from '../../store/people/members.ts';
import { moveSession } from '../../store/people/sessions.ts';
import { chooseWorkspace } from '../../store/people/users.ts';
import { findSecrets } from '../../store/servers/secrets.ts';
import { listSlugs } from '../../store/servers/servers.ts';
import { findWorkspace } from '../../store/workspaces.ts';
import { programName } from '../../version.ts';
import { seesPeople } from '../names.ts';
import { operation } from '../operation.ts';
import { findOwnServer, isoTime } from '../shapes.ts';
import { addWorkspace } from './add-workspace.ts';
import { workspaceName } from './workspaces.ts';

const createWorkspace = operation({
  name: 'createWorkspace',
  summary: 'Make a workspace of your own, and show it in this session',
  scope: 'manage:read',
  effect: 'write',
  people: 'any',
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
  summary: 'Delete the workspace that this session shows, with its servers, keys, members and everything else',
  description:
    'Its servers and keys stop working at once, and the slugs of its servers stay reserved. Sessions that show it go on in another workspace of their person, or end. Nothing of it can be brought back.',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  people: 'owner',
  isTool: false,
  input: z.strictObject({ name: z.string().max(100).describe('The name of the workspace, so that it is meant.') }),
  output: z.object({ deleted: z.string() }),
  async run(context, { name }) {
    const { db, actor } = context;
    const { workspaceId } = actor;
    // The workspace of local mode is made at each start, for the person at this machine.
    if (!workspaceId.startsWith('wsp_'))
      throw new AppError('conflict', 'this workspace belongs to this machine, and stays; delete its servers and keys');
    if ((await findWorkspace(db, workspaceId))?.name !== name)
      throw invalid([{ path: 'name', message: 'is not the name of this workspace' }]);
    for (const id of await memberIds(db, workspaceId)) await recordChange(db, context, 'grant', id);
    await deleteWorkspaceContents(db, workspaceId, context.now());
    await recordChange(db, context, 'workspace', workspaceId);
    return { deleted: workspaceId };
  },
  audit: (_input, { deleted }) => ({ target: deleted }),
});

/** Longest export, in characters. */
export const longestExport = 20_000_000;

const exportWorkspace = operation({
  name: 'exportWorkspace',
  summary: 'The servers and the members of the workspace as a JSON file',
  description: `Each configuration is as createMcpServer takes it, without the values of its secrets. Members have names and addresses in the dashboard, and only ids elsewhere. Up to ${longestExport / 1_000_000} MB; toolhost export writes larger workspaces as files.`,
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({}),
  output: z.object({ json: z.string().describe('The file; the REST API answers with only the file.') }),
  file: { mediaType: 'application/json', name: 'workspace.json', text: ({ json }) => json },
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
      const server = await findOwnServer(context, slug);
      if (!server) continue;
      const secrets = (await findSecrets(db, server)).map(({ name }) => name);
      const text = JSON.stringify({ configuration: server.config, secrets });
      length += text.length;
      if (length > longestExport)
        throw new AppError('tooLarge', `the workspace is larger than an export may be; use: ${programName} export`);
      servers.push(text);
    }
    const { members } = await pageOfPeople(db, actor.workspaceId, { limit: 1000, after: undefined });
    const people = members.map(({ userId: id, name, email, role }) => {
      return { id, ...(seesPeople(actor) && { name, email }), role };
    });
    const head = { workspace: { id: actor.workspaceId, name: workspace?.name }, exported_at: isoTime(context.now()) };
    const json = `${JSON.stringify({ ...head, members: people }).slice(0, -1)},"servers":[${servers.join(',\n')}]}\n`;
    return { json };
  },
});

export const ownWorkspaceOperations = { createWorkspace, deleteWorkspace, exportWorkspace };
