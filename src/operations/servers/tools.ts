import { z } from 'zod';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import { tooLargeProblem } from '../../domain/config/sizes.ts';
import { type Tool, toolSchema } from '../../domain/config/tool.ts';
import { type ViewTool, viewToolOf } from '../../domain/config/view.ts';
import { checkViews } from '../../domain/config/view-rules.ts';
import { foreignDocument } from '../../domain/mistakes.ts';
import { nearestOrAll, newGuesses, ProblemList } from '../../domain/problems.ts';
import { estimatedTokensInTurns, viewWarnings, type Warning, warningsOfList } from '../../domain/warnings/warnings.ts';
import { AppError, invalid } from '../../errors.ts';
import { findSecrets } from '../../store/servers/secrets.ts';
import { type StoredServer, summaryOf } from '../../store/servers/servers.ts';
import { checkConfig, type Precheck, precheck, warningsOfStored } from '../check-config.ts';
import { type Context, operation } from '../operation.ts';
import { firstWarnings, getServer, isUnchanged, slugInput, toolInput, toRecord, versionInput } from '../shapes.ts';
import { type RawFields, versionOf } from './servers.ts';
import { movedWarnings, secretSteps, storeConfig, stored } from './store-server.ts';

/** Input that adds a tool, or changes the tool `before`. */
type ToolInput = { input: RawFields; before?: Tool | undefined };

/**
 * Returns the tool that an input adds or changes. Fields that are sent replace those of `before`, and null removes one.
 * In an input that adds a tool, `tool` is not a known field, and is rejected like any other unknown field.
 */
function toolOfFields(input: RawFields, before: object | undefined): RawFields {
  const { slug: _, expected_version: _version, ...added } = input;
  if (!before) return added;
  const { tool: _tool, ...fields } = added;
  const merged: RawFields = { ...before, ...fields };
  for (const [name, value] of Object.entries(fields)) if (value === null) delete merged[name];
  return merged;
}

/**
 * Returns the configuration to check: the server with only the new tool. A change therefore costs the same however many
 * tools there are, and is not refused because of a tool that it does not touch.
 */
function configToCheck({ config }: StoredServer, { input, before }: ToolInput) {
  const { tools: _, views: _views, ...ofServer } = config;
  return { ...ofServer, tools: [toolOfFields(input, before)] };
}

/** Returns the index of a tool. @throws AppError notFound */
export function indexOfTool({ config }: StoredServer, name: string): number {
  const index = config.tools.findIndex((tool) => tool.name === name);
  if (index >= 0) return index;
  const names = config.tools.map((tool) => tool.name);
  throw new AppError('notFound', `the server has no such tool${nearestOrAll(name, names, newGuesses())}`);
}

/** Checks a large tool before the transaction that stores it. */
async function precheckTool(context: Context, current: StoredServer, given: ToolInput): Promise<Precheck | undefined> {
  const stored = await namesOfSecrets(context, current);
  return precheck(context, configToCheck(current, given), { current, stored, isTool: true });
}

/**
 * Returns the tool with its defaults. Paths of problems are relative to the tool.
 * @throws AppError invalid with all problems
 */
export async function validTool(context: Context, current: StoredServer, given: ToolInput): Promise<Tool> {
  refuseForeign(foreignDocument(toolOfFields(given.input, given.before)));
  const { config, problems, foreign } = await checkConfig(context, configToCheck(current, given), { current });
  refuseForeign(foreign);
  const tool = config?.tools[0];
  if (tool) return tool;
  throw invalid(problems.map(ofTool), 'Nothing was stored; the tool is not valid');
}

function refuseForeign(message: string | undefined): void {
  if (message !== undefined) throw invalid([{ path: '', message }], 'Nothing was stored');
}

/** Refuses the name of another tool; `index` is the index of the tool itself. @throws AppError invalid */
function refuseTakenName({ config }: StoredServer, name: string, index?: number): void {
  const other = config.tools.findIndex((tool) => tool.name === name);
  if (other < 0 || other === index) return;
  throw invalid([
    {
      path: 'name',
      message: `"${name}" is already the name of another tool; change that tool with updateTool, or choose another name`,
    },
  ]);
}

/** Returns the views of a server after one of its tools was renamed, so that they still name that tool. */
function viewsAfterRename({ config }: StoredServer, before: string, after: string): ServerConfig['views'] {
  const { views } = config;
  if (!views || before === after) return views;
  const renamed = (entry: string | ViewTool) => {
    if (viewToolOf(entry).name !== before) return entry;
    return typeof entry === 'string' ? after : { ...entry, name: after };
  };
  return Object.fromEntries(
    Object.entries(views).map(([name, view]) => [
      name,
      { ...view, ...(view.tools && { tools: view.tools.map(renamed) }) },
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
    throw invalid(
      problems.all(),
      'Nothing was stored; a view needs the tool as it is, so change the views first with updateMcpServer',
    );
}

/**
 * Refuses a change of a tool that would make the server too large when it is rendered or compiled.
 * @throws AppError invalid
 */
function refuseTooLarge(config: ServerConfig): void {
  const message = tooLargeProblem(config);
  if (message !== undefined)
    throw invalid([{ path: '', message }], 'Nothing was stored; the server would be too large');
}

/** Returns the warnings about one tool and about the tool list. Paths are relative to the tool, or `tools`. */
async function warningsOfChange(context: Context, server: StoredServer, tool?: Tool): Promise<Warning[]> {
  const tokens = await estimatedTokensInTurns(server.config);
  const ofList = [...warningsOfList(server.config, tokens), ...viewWarnings(server.config)];
  if (!tool) return ofList;
  const checked = context.precheck?.config?.tools;
  const { views: _, ...config } = server.config;
  const only = { ...config, tools: checked?.[0]?.name === tool.name ? checked : [tool] };
  const found = await warningsOfStored(context, only, await namesOfSecrets(context, server));
  return [...found.filter(({ path }) => path.startsWith(prefix)).map(ofTool), ...ofList];
}

const prefix = 'tools[0].';

function ofTool({ path, message }: Warning): Warning {
  return { path: path.startsWith(prefix) ? path.slice(prefix.length) : path, message };
}

async function namesOfSecrets(context: Context, server: StoredServer): Promise<string[]> {
  return (await findSecrets(context.db, server)).map((secret) => secret.name);
}

const output = stored.extend({ tool: z.string().describe('Name of the tool.') });
type Answer = z.input<typeof output>;
type Input = { slug: unknown; expected_version?: unknown };

/** Fields of a tool. Each may be absent or, if a tool does not require it, null. */
const changedFields = Object.fromEntries(
  Object.entries(toolSchema.shape).map(([name, field]) => {
    const inner = field instanceof z.ZodDefault ? field.unwrap() : field;
    const isRemovable = field.safeParse(undefined).success;
    const changeable = (isRemovable ? inner.nullable() : inner).optional();
    return [name, field.description === undefined ? changeable : changeable.describe(field.description)];
  }),
);

/** Stores a changed list of tools. `tool` is the added or changed tool, and `was` its previous name. */
async function store(
  context: Context,
  current: StoredServer,
  change: { input: Input; tools: Tool[]; tool?: Tool; name: string; was?: string },
): Promise<Answer> {
  const { input, tools, tool, name, was = name } = change;
  const views = viewsAfterRename(current, was, name);
  const config = { ...current.config, ...(views && { views }), tools };
  refuseBrokenViews(config, name);
  if (tool) refuseTooLarge(config);
  const { server, isUnchanged } = await storeConfig(context, current, config, versionOf(input));
  const warnings = await warningsOfChange(context, server, tool);
  return {
    tool: name,
    server: toRecord(server, summaryOf(server.config), context),
    url: context.serverUrl(server.slug),
    warnings: firstWarnings([...movedWarnings(await findSecrets(context.db, server), server.config), ...warnings]),
    next_steps: secretSteps(server, warnings),
    ...(isUnchanged && { unchanged: true as const }),
  };
}

const audit = (_input: unknown, { tool, server }: Answer) => ({
  target: server.slug,
  detail: { tool, version: server.version, tools: server.tool_count },
});

const saidOf = (verb: string) => (answer: Answer) =>
  [
    `${answer.unchanged ? 'Nothing changed in' : verb} the tool "${answer.tool}" of the server "${answer.server.name}" (version ${answer.server.version}).`,
    ...answer.warnings.map((warning) => `Warning: ${warning.path}: ${warning.message}`),
    ...answer.next_steps.map((step) => `Next: ${step}`),
  ].join('\n');

const addTool = operation({
  name: 'addTool',
  summary: 'Add a tool to a hosted server',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({ slug: slugInput, ...toolSchema.shape, expected_version: versionInput }),
  validatesInput: true,
  output,
  async precheck(context, input) {
    return precheckTool(context, await getServer(context, String(input.slug)), { input });
  },
  async run(context, input) {
    const current = await getServer(context, String(input.slug));
    const tool = await validTool(context, current, { input });
    refuseTakenName(current, tool.name);
    return store(context, current, { input, tools: [...current.config.tools, tool], tool, name: tool.name });
  },
  audit,
  say: saidOf('Added'),
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
  output,
  async precheck(context, input) {
    const current = await getServer(context, String(input.slug));
    const before = current.config.tools[indexOfTool(current, String(input.tool))];
    return precheckTool(context, current, { input, before });
  },
  async run(context, input) {
    const current = await getServer(context, String(input.slug));
    const index = indexOfTool(current, String(input.tool));
    const tool = await validTool(context, current, { input, before: current.config.tools[index] });
    refuseTakenName(current, tool.name, index);
    const tools = current.config.tools.with(index, tool);
    return store(context, current, { input, tools, tool, name: tool.name, was: String(input.tool) });
  },
  isUnchanged,
  audit: (input, answer) => {
    const entry = audit(input, answer);
    return answer.tool === input.tool ? entry : { ...entry, detail: { was: input.tool, ...entry.detail } };
  },
  say: saidOf('Changed'),
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
  output,
  async run(context, input) {
    const current = await getServer(context, input.slug);
    const index = indexOfTool(current, input.tool);
    return store(context, current, { input, tools: current.config.tools.toSpliced(index, 1), name: input.tool });
  },
  audit,
  say: saidOf('Removed'),
});

export const toolOperations = { addTool, updateTool, removeTool };
