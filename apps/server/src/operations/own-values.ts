import { isDeepStrictEqual } from 'node:util';
import { AppError } from '@toolhost/errors/errors';
import { getFieldHosts } from '@toolhost/tool-config/field-hosts';
import { type LoginField, maxLoginFields } from '@toolhost/tool-config/login';
import { checkLoginValue, getValuesAgreement } from '@toolhost/tool-config/login-values';
import { z } from 'zod';
import { recordChange } from '../store/changes/follow-changes.ts';
import { revokeLoginsAtServer } from '../store/logins/grants.ts';
import {
  deletePersonValues,
  findPersonValues,
  findValuesOfPerson,
  maxListedServers,
  savePersonValues,
} from '../store/logins/person-values.ts';
import { getServer } from './find-server.ts';
import { type Context, operation } from './operation.ts';
import { nameSchema } from './schema-names.ts';
import { isUnchanged, slugInput, time, toIsoTime, unchangedShape } from './shapes.ts';

const providedNames = z.array(z.string()).max(maxLoginFields);

const ownValuesRecord = z.object({
  server: z.string().describe('Slug of the server.'),
  name: z.string().describe('Name of the server.'),
  provided: providedNames.describe('Names of the stored values. The values themselves are never shown.'),
  refused: providedNames.describe('Names of the values that the API refused.'),
  updated_at: time,
});
nameSchema('OwnValues', ownValuesRecord);

/** Returns the id of the signed-in person. @throws AppError forbidden for a key */
function getPersonId({ actor }: Context): string {
  if (actor.kind === 'user') return actor.id;
  throw new AppError('forbidden', 'only a person who is signed in has own values; sign in to the dashboard');
}

const listOwnValues = operation({
  name: 'listOwnValues',
  summary: 'List the servers that hold values of the signed-in person, such as their own API keys',
  scope: 'manage:read',
  effect: 'read',
  dashboardRole: 'any',
  isTool: false,
  input: z.strictObject({}),
  output: z.object({ servers: z.array(ownValuesRecord).max(maxListedServers) }),
  async run(context) {
    const rows = await findValuesOfPerson(context.db, context.actor.workspaceId, getPersonId(context));
    return {
      servers: rows.map(({ slug, serverName, names, refused, updatedAt }) => ({
        server: slug,
        name: serverName,
        provided: [...names],
        refused: [...refused],
        updated_at: toIsoTime(updatedAt),
      })),
    };
  },
});

const setOwnValues = operation({
  name: 'setOwnValues',
  summary: 'Store values of the signed-in person at a server, such as their own API key',
  description:
    'Values that are left out stay as they are, unless the hosts or fields of the server have changed since they were entered; then they are deleted. Each value is stored encrypted and sent only to the hosts of the server that its field names, with calls of this person. At a server with oauth, values belong to each login; log in again to change them.',
  scope: 'manage:read',
  effect: 'write',
  dashboardRole: 'any',
  isTool: false,
  input: z.strictObject({
    slug: slugInput,
    values: z.record(z.string().max(64), z.string().max(20_000)).describe('Values by the name of their field.'),
  }),
  output: z.object({ server: z.string(), provided: providedNames, unchanged: unchangedShape }),
  async run(context, { slug, values }) {
    const { db, keyring, actor } = context;
    const userId = getPersonId(context);
    const server = await getServer(context, slug);
    const { login, oauth } = server.config;
    if (!login?.fields || oauth)
      throw new AppError(
        'invalid',
        `the server ${slug} asks for no values outside of a login; log in with an MCP client`,
      );
    const key = { serverId: server.id, userId };
    const stored = await findPersonValues(db, keyring, key);
    const hosts = getFieldHosts(server.config);
    const agreement = getValuesAgreement(login.fields, hosts);
    const merged = mergeValues(login.fields, stored?.values ?? {}, values);
    const kept = Object.keys(merged).filter((name) => !Object.hasOwn(values, name));
    const hasMoved = stored !== undefined && stored.agreement !== agreement;
    const unusable = kept.filter((name) => hasMoved || stored?.refused.includes(name));
    if (unusable.length > 0) throw createUnusableError(unusable, hosts, hasMoved);
    const result = { server: slug, provided: Object.keys(merged) };
    if (!hasMoved && stored?.refused.length === 0 && isDeepStrictEqual(stored.values, merged))
      return { ...result, unchanged: true as const };
    const isStored = await savePersonValues(db, keyring, {
      ...key,
      workspaceId: actor.workspaceId,
      values: merged,
      agreement,
      at: context.now(),
    });
    if (!isStored) throw new AppError('conflict', 'this server stores values of too many people; ask its owner');
    await recordChange(db, context, 'grant', userId);
    return result;
  },
  isUnchanged,
  audit: ({ slug, values }) => ({ target: slug, detail: { names: Object.keys(values) } }),
});

/** Creates the error for stored values that may not stay as they are. */
function createUnusableError(
  names: readonly string[],
  hosts: ReadonlyMap<string, string[]>,
  hasMoved: boolean,
): AppError {
  const reason = hasMoved
    ? `values of this server are now sent to ${[...new Set(names.flatMap((name) => hosts.get(name) ?? []))].join(', ')}`
    : 'the API refused the stored value';
  return new AppError('conflict', `${reason}; enter ${names.join(', ')} again`);
}

/** Checks new values and adds them to the stored ones of the same fields. @throws AppError invalid */
function mergeValues(
  fields: readonly LoginField[],
  stored: Readonly<Record<string, string>>,
  values: Readonly<Record<string, string>>,
): Record<string, string> {
  const unknown = Object.keys(values).find((name) => !fields.some((field) => field.name === name));
  if (unknown !== undefined)
    throw new AppError('invalid', `values.${unknown.slice(0, 64)}: this server has no field with this name`);
  const merged: Record<string, string> = {};
  for (const field of fields) {
    const { name } = field;
    const text = Object.hasOwn(values, name) ? values[name] : undefined;
    if (text === undefined && Object.hasOwn(stored, name)) merged[name] = stored[name] ?? '';
    if (text === undefined) continue;
    const checked = checkLoginValue(field, text);
    if ('problem' in checked)
      throw new AppError('invalid', `values.${name}: ${checked.problem}`, {
        problems: [{ path: `values.${name}`, message: checked.problem }],
      });
    if (checked.value !== '') merged[name] = checked.value;
  }
  return merged;
}

const deleteOwnValues = operation({
  name: 'deleteOwnValues',
  summary: 'Delete the values of the signed-in person at a server; their logins there end',
  scope: 'manage:read',
  effect: 'write',
  destructive: true,
  dashboardRole: 'any',
  isTool: false,
  input: z.strictObject({ slug: slugInput }),
  output: z.object({ deleted: z.string() }),
  async run(context, { slug }) {
    const { db } = context;
    const userId = getPersonId(context);
    const { id: serverId } = await getServer(context, slug);
    const wasStored = await deletePersonValues(db, { serverId, userId });
    if (!wasStored) throw new AppError('notFound', `the server ${slug} holds no values of yours`);
    await revokeLoginsAtServer(db, { serverId, userId }, context.now());
    await recordChange(db, context, 'grant', userId);
    return { deleted: slug };
  },
  audit: ({ slug }) => ({ target: slug }),
});

export const ownValueOperations = { listOwnValues, setOwnValues, deleteOwnValues };
