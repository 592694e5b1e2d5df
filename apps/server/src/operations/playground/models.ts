import { isIP } from 'node:net';
import { hasScope } from '@toolhost/credentials/credential';
import { AppError, invalidInputError } from '@toolhost/errors/errors';
import { createSuggestionBudget, suggestNearestOrList } from '@toolhost/errors/problems';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { singleLineText } from '@toolhost/tool-config/tool';
import { z } from 'zod';
import { defaultModelUrls, type Model, type ModelKind, modelKinds } from '../../model.ts';
import { findModel, findModels, removeModel, type StoredModel, saveModel } from '../../store/models.ts';
import { type Context, operation } from '../operation.ts';
import { nameSchema } from '../schema-names.ts';
import { secretValueInput } from '../servers/secrets.ts';
import { time, toIsoTime } from '../shapes.ts';

/** Maximum number of stored models in a workspace. */
export const maxModels = 20;

const nameInput = z
  .string()
  .regex(/^[a-z0-9](-?[a-z0-9]){0,39}$/, 'allowed: 1 to 40 lowercase letters, digits, and single hyphens')
  .describe('Name of the stored model, such as claude or local.');

const kindInput = z.enum(modelKinds).describe('API of the model host; openai includes every compatible API.');
const urlInput = z.string().min(1).max(500).optional().describe('URL of the API, if it is not that of the provider.');
const modelInput = singleLineText(200).describe('Name of the model at its host.');
const keyInput = secretValueInput.optional().describe('API key of the model. It is sent only to the model host.');

export const modelShape = z.strictObject({ kind: kindInput, url: urlInput, model: modelInput, key: keyInput });

const modelRecord = z.object({
  name: z.string(),
  kind: kindInput,
  url: z.string(),
  model: modelInput,
  has_key: z.boolean(),
  created_by: z.string(),
  updated_at: time,
});
nameSchema('Model', modelRecord);

function toRecord(stored: StoredModel): z.input<typeof modelRecord> {
  const { name, kind, url, model, hasKey, createdBy, updatedAt } = stored;
  return { name, kind, url, model, has_key: hasKey, created_by: createdBy, updated_at: toIsoTime(updatedAt) };
}

/** A model to use, and its name in errors for the actor. */
type ChosenModel = { model: Model; subject: string };

/**
 * Returns the model that a request names or describes. Describing a model requires the scope that may store it. An
 * actor that may only call tools can therefore only make the service connect to hosts that editors configured, and
 * learns no URL.
 * @throws AppError invalid, forbidden, notFound
 */
export async function resolveModel(
  context: Context,
  request: z.output<typeof modelShape> | { saved: string },
): Promise<ChosenModel> {
  const { db, keyring, actor } = context;
  const canStore = hasScope(actor.scopes, 'manage:write');
  if (!('saved' in request)) {
    if (!canStore)
      throw new AppError(
        'forbidden',
        'Describing a model needs the scope manage:write. Choose a stored model with {"saved": "…"}; listModels returns the names.',
      );
    const url = getAllowedUrl(context, request);
    return {
      model: { kind: request.kind, url, name: request.model, key: request.key },
      subject: formatHostSubject(url),
    };
  }
  const stored = await findModel(db, keyring, actor.workspaceId, request.saved);
  if (!stored) throw await createUnknownModelError(context, request.saved);
  const { kind, url, model: name, key } = stored;
  const nameSubject = `The model ${JSON.stringify(stored.name)}`;
  if (getUrlProblem(context, url) !== undefined && !canStore)
    throw new AppError(
      'invalid',
      `${nameSubject} has a URL that this service may not call. Ask an editor to store it again with another URL.`,
    );
  getAllowedUrl(context, stored);
  return {
    model: { kind, url, name, key },
    subject: canStore ? formatHostSubject(url) : nameSubject,
  };
}

/** Names the host of a model for errors; an IP address is not repeated. */
function formatHostSubject(url: string): string {
  const { hostname } = new URL(url);
  return isIP(hostname.replaceAll(/[[\]]/g, '')) === 0 ? `The model's host ${hostname}` : "The model's host";
}

/** Returns the URL of a model. @throws AppError invalid for a URL that this deployment may not call */
function getAllowedUrl(
  context: Context,
  { kind, url: customUrl }: { kind: ModelKind; url?: string | undefined },
): string {
  const url = customUrl ?? defaultModelUrls[kind];
  const problem = getUrlProblem(context, url);
  if (problem !== undefined) throw invalidInputError([{ path: 'url', message: problem }]);
  return url;
}

function getUrlProblem({ rules }: Context, url: string): string | undefined {
  const parsed = parseUrl(url);
  if (!parsed) return 'not a URL; allowed: a URL such as https://api.example.com/v1';
  if (/[?#]/.test(url))
    return 'found a query or a fragment; allowed: a URL without them, such as https://api.example.com/v1';
  return rules.urlProblem(parsed);
}

async function createUnknownModelError({ db, actor }: Context, name: string): Promise<AppError> {
  const names = (await findModels(db, actor.workspaceId)).map((stored) => stored.name);
  return new AppError(
    'notFound',
    `the workspace has no model ${name}${suggestNearestOrList(name, names, createSuggestionBudget())}`,
  );
}

const listModels = operation({
  name: 'listModels',
  summary: 'List the stored models of the workspace; keys are never shown',
  scope: 'manage:read',
  effect: 'read',
  isTool: false,
  input: z.strictObject({}),
  output: z.object({ models: z.array(modelRecord).max(maxModels) }),
  async run({ db, actor }) {
    return { models: (await findModels(db, actor.workspaceId)).map(toRecord) };
  },
});

const saveModelOperation = operation({
  name: 'saveModel',
  summary: 'Store or replace a model and its key for the workspace',
  description:
    'Everyone who may call tools of the workspace may use the model in the playground. The key is stored sealed.',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject({ name: nameInput, ...modelShape.shape }),
  output: modelRecord,
  async run(context, { name, key, ...input }) {
    const { db, keyring, actor, now } = context;
    const existing = await findModels(db, actor.workspaceId);
    if (existing.length >= maxModels && existing.every((model) => model.name !== name))
      throw new AppError(
        'forbidden',
        `the workspace has ${existing.length} models; allowed: ${maxModels}; delete one first`,
      );
    const stored = { name, kind: input.kind, url: getAllowedUrl(context, input), model: input.model, key };
    await saveModel(db, keyring, actor.workspaceId, { ...stored, createdBy: actor.id, updatedAt: now() });
    return toRecord({ ...stored, hasKey: key !== undefined, createdBy: actor.id, updatedAt: now() });
  },
  audit: ({ name, kind, model }, { url }) => ({
    target: name,
    detail: { kind, model, host: new URL(url).host },
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
    throw await createUnknownModelError(context, name);
  },
  audit: ({ name }) => ({ target: name }),
});

export const modelOperations = { listModels, saveModel: saveModelOperation, deleteModel };
