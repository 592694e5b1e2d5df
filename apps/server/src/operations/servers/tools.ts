import { AppError, invalidInputError } from '@toolhost/errors/errors';
import { describeForeignDocument } from '@toolhost/errors/input-errors';
import { createSuggestionBudget, ProblemList, suggestNearestOrList } from '@toolhost/errors/problems';
import type { ServerConfig } from '@toolhost/tool-config/server-config';
import { checkConfigSize } from '@toolhost/tool-config/sizes';
import { type Tool, toolSchema } from '@toolhost/tool-config/tool';
import { toViewTool, type ViewTool } from '@toolhost/tool-config/view';
import { checkViews } from '@toolhost/tool-config/view-rules';
import type { Warning } from '@toolhost/tool-config/warning';
import { z } from 'zod';
import { findSecrets } from '../../store/servers/secrets.ts';
import { type StoredServer, summarizeConfig } from '../../store/servers/servers.ts';
import { estimateTokensInChunks, findListWarnings, findViewWarnings } from '../../warnings.ts';
import { checkConfig, findSecretNames, getStoredWarnings, prepareConfig } from '../check-config.ts';
import { getServer } from '../find-server.ts';
import { type Context, operation, type Prepared } from '../operation.ts';
import { isUnchanged, limitWarnings, slugInput, toolInput, toServerRecord, versionInput } from '../shapes.ts';
import { parseExpectedVersion, type RawFields } from './servers.ts';
import { getMovedSecretWarnings, getSecretSteps, storeConfig, storeResultShape } from './store-server.ts';

/** Input that adds a tool, or changes the tool `before`. */
type ToolInput = { input: RawFields; before?: Tool | undefined };

/**
 * Returns the tool that an input adds or changes. Fields that are sent replace those of `before`, and null removes one.
 * In an input that adds a tool, `tool` is not a known field, and is rejected like any other unknown field.
 */
function mergeToolFields(input: RawFields, before: object | undefined): RawFields {
  const { slug: _, expected_version: _version, ...added } = input;
  if (!before) return added;
  const { tool: _tool, ...fields } = added;
  const merged: RawFields = { ...before, ...fields };
  for (const [name, value] of Object.entries(fields)) if (value === null) delete merged[name];
  return merged;
}

/**
 * Returns the configuration to check: the server with only the new tool. The cost of a change is therefore independent
 * of the number of tools, and a problem of another tool does not refuse the change.
 */
function toCheckedConfig({ config }: StoredServer, { input, before }: ToolInput) {
  const { tools: _, views: _views, ...serverFields } = config;
  return { ...serverFields, tools: [mergeToolFields(input, before)] };
}

/** Returns the index of a tool. @throws AppError notFound */
export function findToolIndex({ config }: StoredServer, name: string): number {
  const index = config.tools.findIndex((tool) => tool.name === name);
  if (index >= 0) return index;
  const names = config.tools.map((tool) => tool.name);
  throw new AppError(
    'notFound',
    `the server has no such tool${suggestNearestOrList(name, names, createSuggestionBudget())}`,
  );
}

function prepareTool(context: Context, current: StoredServer, toolEdit: ToolInput): Promise<Prepared> {
  return prepareConfig(context, toCheckedConfig(current, toolEdit), { current, isTool: true });
}

/**
 * Returns the tool with its defaults. Paths of problems are relative to the tool.
 * @throws AppError invalid with all problems
 */
export async function requireValidTool(context: Context, current: StoredServer, toolEdit: ToolInput): Promise<Tool> {
  refuseForeignDocument(describeForeignDocument(mergeToolFields(toolEdit.input, toolEdit.before)));
  const { config, problems, foreignKind } = await checkConfig(context, toCheckedConfig(current, toolEdit), { current });
  refuseForeignDocument(foreignKind);
  const tool = config?.tools[0];
  if (tool) return tool;
  throw invalidInputError(problems.map(toToolPath), 'Nothing was stored; the tool is not valid');
}

function refuseForeignDocument(message: string | undefined): void {
  if (message !== undefined) throw invalidInputError([{ path: '', message }], 'Nothing was stored');
}

/** Refuses the name of another tool; `index` is the index of the tool itself. @throws AppError invalid */
function refuseTakenName({ config }: StoredServer, name: string, index?: number): void {
  const otherIndex = config.tools.findIndex((tool) => tool.name === name);
  if (otherIndex < 0 || otherIndex === index) return;
  throw invalidInputError([
    {
      path: 'name',
      message: `"${name}" is already the name of another tool; change that tool with updateTool, or choose another name`,
    },
  ]);
}

/** Returns the views of a server after one of its tools was renamed, so that they still name that tool. */
function renameInViews({ config }: StoredServer, before: string, after: string): ServerConfig['views'] {
  const { views } = config;
  if (!views || before === after) return views;
  const renameEntry = (entry: string | ViewTool) => {
    if (toViewTool(entry).name !== before) return entry;
    return typeof entry === 'string' ? after : { ...entry, name: after };
  };
  return Object.fromEntries(
    Object.entries(views).map(([name, view]) => [
      name,
      { ...view, ...(view.tools && { tools: view.tools.map(renameEntry) }) },
    ]),
  );
}

/**
 * Refuses a change of a tool that a view does not allow. A view lists by name what agents get, so no change of a tool
 * silently removes something from it.
 * @throws AppError invalid
 */
function refuseBrokenViews(config: ServerConfig, changed: string): void {
  if (!config.views) return;
  const problems = new ProblemList();
  checkViews(config, problems, ({ name }) => name === changed);
  if (problems.count > 0)
    throw invalidInputError(
      problems.all(),
      'Nothing was stored; a view needs the tool as it is, so change the views first with updateMcpServer',
    );
}

/**
 * Refuses a change of a tool that would make the server too large when it is rendered or compiled.
 * @throws AppError invalid
 */
function refuseTooLargeServer(config: ServerConfig): void {
  const message = checkConfigSize(config);
  if (message !== undefined)
    throw invalidInputError([{ path: '', message }], 'Nothing was stored; the server would be too large');
}

/** Returns the warnings about one tool and about the tool list. Paths are relative to the tool, or `tools`. */
async function getChangeWarnings(context: Context, server: StoredServer, tool?: Tool): Promise<Warning[]> {
  const tokens = await estimateTokensInChunks(server.config);
  const listWarnings = [...findListWarnings(server.config, tokens), ...findViewWarnings(server.config)];
  if (!tool) return listWarnings;
  const checkedTools = context.prepared?.check?.config?.tools;
  const { views: _, ...config } = server.config;
  const toolOnlyConfig = { ...config, tools: checkedTools?.[0]?.name === tool.name ? checkedTools : [tool] };
  const toolWarnings = await getStoredWarnings(context, toolOnlyConfig, await findSecretNames(context, server));
  return [...toolWarnings.filter(({ path }) => path.startsWith(checkedToolPrefix)).map(toToolPath), ...listWarnings];
}

const checkedToolPrefix = 'tools[0].';

function toToolPath({ path, message }: Warning): Warning {
  return { path: path.startsWith(checkedToolPrefix) ? path.slice(checkedToolPrefix.length) : path, message };
}

const toolResultShape = storeResultShape.extend({ tool: z.string().describe('Name of the tool.') });
type ToolOutput = z.input<typeof toolResultShape>;
type Input = { slug: unknown; expected_version?: unknown };

/** Fields of a tool. Each may be absent or, if a tool does not require it, null. */
const changedFields = Object.fromEntries(
  Object.entries(toolSchema.shape).map(([name, field]) => {
    const withoutDefault = field instanceof z.ZodDefault ? field.unwrap() : field;
    const isRemovable = field.safeParse(undefined).success;
    const changeable = (isRemovable ? withoutDefault.nullable() : withoutDefault).optional();
    return [name, field.description === undefined ? changeable : changeable.describe(field.description)];
  }),
);

/** Stores a changed list of tools. `tool` is the added or changed tool. */
async function storeTools(
  context: Context,
  current: StoredServer,
  change: { input: Input; tools: Tool[]; tool?: Tool; name: string; previousName?: string },
): Promise<ToolOutput> {
  const { input, tools, tool, name, previousName = name } = change;
  const views = renameInViews(current, previousName, name);
  const config = { ...current.config, ...(views && { views }), tools };
  refuseBrokenViews(config, name);
  if (tool) refuseTooLargeServer(config);
  const { server, isUnchanged } = await storeConfig(context, current, config, parseExpectedVersion(input));
  const warnings = await getChangeWarnings(context, server, tool);
  return {
    tool: name,
    server: toServerRecord(server, summarizeConfig(server.config), context),
    url: context.serverUrl(server.slug),
    warnings: limitWarnings([
      ...getMovedSecretWarnings(await findSecrets(context.db, server), server.config),
      ...warnings,
    ]),
    next_steps: getSecretSteps(server, warnings),
    ...(isUnchanged && { unchanged: true as const }),
  };
}

const auditToolChange = (_input: unknown, { tool, server }: ToolOutput) => ({
  target: server.slug,
  detail: { tool, version: server.version, tools: server.tool_count },
});

const formatToolChange = (verb: string) => (output: ToolOutput) =>
  [
    `${output.unchanged ? 'Nothing changed in' : verb} the tool "${output.tool}" of the server "${output.server.name}" (version ${output.server.version}).`,
    ...output.warnings.map((warning) => `Warning: ${warning.path}: ${warning.message}`),
    ...output.next_steps.map((step) => `Next: ${step}`),
  ].join('\n');

const addTool = operation({
  name: 'addTool',
  summary: 'Add a tool to a hosted server',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({ slug: slugInput, ...toolSchema.shape, expected_version: versionInput }),
  validatesInput: true,
  output: toolResultShape,
  async prepare(context, input) {
    return prepareTool(context, await getServer(context, String(input.slug)), { input });
  },
  async run(context, input) {
    const current = await getServer(context, String(input.slug));
    const tool = await requireValidTool(context, current, { input });
    refuseTakenName(current, tool.name);
    return storeTools(context, current, { input, tools: [...current.config.tools, tool], tool, name: tool.name });
  },
  audit: auditToolChange,
  toAgentText: formatToolChange('Added'),
});

const updateTool = operation({
  name: 'updateTool',
  summary: 'Change fields of a tool of a hosted server',
  description:
    'Fields that you send replace the stored ones completely; null removes a field. name renames the tool, also in views.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({ slug: slugInput, tool: toolInput, ...changedFields, expected_version: versionInput }),
  validatesInput: true,
  output: toolResultShape,
  async prepare(context, input) {
    const current = await getServer(context, String(input.slug));
    const before = current.config.tools[findToolIndex(current, String(input.tool))];
    return prepareTool(context, current, { input, before });
  },
  async run(context, input) {
    const current = await getServer(context, String(input.slug));
    const index = findToolIndex(current, String(input.tool));
    const tool = await requireValidTool(context, current, { input, before: current.config.tools[index] });
    refuseTakenName(current, tool.name, index);
    const tools = current.config.tools.with(index, tool);
    return storeTools(context, current, { input, tools, tool, name: tool.name, previousName: String(input.tool) });
  },
  isUnchanged,
  audit: (input, output) => {
    const entry = auditToolChange(input, output);
    return output.tool === input.tool ? entry : { ...entry, detail: { was: input.tool, ...entry.detail } };
  },
  toAgentText: formatToolChange('Changed'),
});

const removeTool = operation({
  name: 'removeTool',
  summary: 'Remove a tool from a hosted server',
  description: 'A tool that a view names cannot be removed. updateTool with "disabled": true hides it.',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  isTool: true,
  input: z.strictObject({ slug: slugInput, tool: toolInput, expected_version: versionInput }),
  output: toolResultShape,
  async run(context, input) {
    const current = await getServer(context, input.slug);
    const index = findToolIndex(current, input.tool);
    return storeTools(context, current, { input, tools: current.config.tools.toSpliced(index, 1), name: input.tool });
  },
  audit: auditToolChange,
  toAgentText: formatToolChange('Removed'),
});

export const toolOperations = { addTool, updateTool, removeTool };
