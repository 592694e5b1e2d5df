import { isIP } from 'node:net';
import { z } from 'zod';
import { singleLineText } from '../../domain/config/tool.ts';
import { covers } from '../../domain/credentials/credential.ts';
import { readUrl } from '../../domain/http/read-url.ts';
import { type Model, type ModelKind, modelKinds, modelUrls } from '../../domain/model.ts';
import { nearestOrAll, newGuesses } from '../../domain/problems.ts';
import { AppError, invalid } from '../../errors.ts';
import { findModel, findModels, removeModel, type StoredModel, saveModel } from '../../store/models.ts';
import { type Context, operation } from '../operation.ts';
import { nameSchema } from '../schema-names.ts';
import { secretValueInput } from '../servers/secrets.ts';
import { isoTime, time } from '../shapes.ts';

/** Maximum number of stored models in a workspace. */
export const mostModels = 20;

const nameInput = z
  .string()
  .regex(/^[a-z0-9](-?[a-z0-9]){0,39}$/, 'allowed: 1 to 40 lowercase letters, digits, and single hyphens')
  .describe('Name of the stored model, such as claude or local.');

const kind = z.enum(modelKinds).describe('API of the model host; openai includes every compatible API.');
const url = z.string().min(1).max(500).optional().describe('URL of the API, if it is not that of the provider.');
const model = singleLineText(200).describe('Name of the model at its host.');
const key = secretValueInput.optional().describe('API key of the model. It is sent only to the model host.');

export const modelShape = z.strictObject({ kind, url, model, key });

const modelRecord = z.object({
  name: z.string(),
  kind,
  url: z.string(),
  model,
  has_key: z.boolean(),
  created_by: z.string(),
  updated_at: time,
});
nameSchema('Model', modelRecord);

function toRecord(stored: StoredModel): z.input<typeof modelRecord> {
  const { name, kind: of, url: at, model: called, hasKey, createdBy, updatedAt } = stored;
  const record = { name, kind: of, url: at, model: called, has_key: hasKey };
  return { ...record, created_by: createdBy, updated_at: isoTime(updatedAt) };
}

/** A model to use, and its name in errors for the actor. */
type ChosenModel = { model: Model; subject: string };

/**
 * Returns the model that a request names or describes. Describing a model requires the scope that may store it. An
 * actor that may only call tools can therefore only make the service connect to hosts that editors configured, and
 * learns no URL.
 * @throws AppError invalid, forbidden, notFound
 */
export async function modelOf(
  context: Context,
  given: z.output<typeof modelShape> | { saved: string },
): Promise<ChosenModel> {
  const { db, keyring, actor } = context;
  const canStore = covers(actor.scopes, 'manage:write');
  if (!('saved' in given)) {
    if (!canStore)
      throw new AppError(
        'forbidden',
        'Describing a model needs the scope manage:write. Choose a stored model with {"saved": "…"}; listModels returns the names.',
      );
    const url = checkedUrl(context, given);
    return { model: { kind: given.kind, url, name: given.model, key: given.key }, subject: hostSubject(url) };
  }
  const stored = await findModel(db, keyring, actor.workspaceId, given.saved);
  if (!stored) throw await unknownModel(context, given.saved);
  const { kind: of, url, model: name, key: secret } = stored;
  const nameSubject = `The model ${JSON.stringify(stored.name)}`;
  if (addressProblem(context, url) !== undefined && !canStore)
    throw new AppError(
      'invalid',
      `${nameSubject} has a URL that this service may not call. Ask an editor to store it again with another URL.`,
    );
  checkedUrl(context, stored);
  return { model: { kind: of, url, name, key: secret }, subject: canStore ? hostSubject(url) : nameSubject };
}

/** Names the host of a model for errors; an IP address is not repeated. */
function hostSubject(url: string): string {
  const { hostname } = new URL(url);
  return isIP(hostname.replaceAll(/[[\]]/g, '')) === 0 ? `The model's host ${hostname}` : "The model's host";
}

/** Returns the URL of a model. @throws AppError invalid for a URL that this deployment may not call */
function checkedUrl(context: Context, { kind: of, url: given }: { kind: ModelKind; url?: string | undefined }): string {
  const url = given ?? modelUrls[of];
  const problem = addressProblem(context, url);
  if (problem !== undefined) throw invalid([{ path: 'url', message: problem }]);
  return url;
}

function addressProblem({ rules }: Context, url: string): string | undefined {
  const found = readUrl(url);
  if (!found) return 'not a URL; allowed: a URL such as https://api.example.com/v1';
  if (/[?#]/.test(url))
    return 'found a query or a fragment; allowed: a URL without them, such as https://api.example.com/v1';
  return rules.urlProblem(found);
}

async function unknownModel({ db, actor }: Context, name: string): Promise<AppError> {
  const names = (await findModels(db, actor.workspaceId)).map((stored) => stored.name);
  return new AppError('notFound', `the workspace has no model ${name}${nearestOrAll(name, names, newGuesses())}`);
}

const listModels = operation({
  name: 'listModels',
  summary: 'List the stored models of the workspace; keys are never shown',
  scope: 'manage:read',
  effect: 'read',
  isTool: false,
  input: z.strictObject({}),
  output: z.object({ models: z.array(modelRecord).max(mostModels) }),
  async run({ db, actor }) {
    return { models: (await findModels(db, actor.workspaceId)).map(toRecord) };
  },
});

const setModel = operation({
  name: 'saveModel',
  summary: 'Store or replace a model and its key for the workspace',
  description:
    'Everyone who may call tools of the workspace may use the model in the playground. The key is stored sealed.',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject({ name: nameInput, kind, url, model, key }),
  output: modelRecord,
  async run(context, { name, key: secret, ...given }) {
    const { db, keyring, actor, now } = context;
    const all = await findModels(db, actor.workspaceId);
    if (all.length >= mostModels && all.every((one) => one.name !== name))
      throw new AppError(
        'forbidden',
        `the workspace has ${all.length} models; allowed: ${mostModels}; delete one first`,
      );
    const stored = { name, kind: given.kind, url: checkedUrl(context, given), model: given.model, key: secret };
    await saveModel(db, keyring, actor.workspaceId, { ...stored, createdBy: actor.id, updatedAt: now() });
    return toRecord({ ...stored, hasKey: secret !== undefined, createdBy: actor.id, updatedAt: now() });
  },
  audit: ({ name, kind: of, model: called }, { url: at }) => ({
    target: name,
    detail: { kind: of, model: called, host: new URL(at).host },
  }),
});

const deleteModel = operation({
  name: 'deleteModel',
  summary: 'Delete a stored model and its key',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  isTool: false,
  input: z.strictObject({ name: nameInput }),
  output: z.object({ deleted: z.string() }),
  async run(context, { name }) {
    if (await removeModel(context.db, context.actor.workspaceId, name)) return { deleted: name };
    throw await unknownModel(context, name);
  },
  audit: ({ name }) => ({ target: name }),
});

export const modelOperations = { listModels, saveModel: setModel, deleteModel };
