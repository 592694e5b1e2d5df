import { z } from 'zod';
import { type Tool, toolSchema } from '../../domain/config/tool.ts';
import { findSecrets } from '../../store/servers/secrets.ts';
import { summaryOf } from '../../store/servers/server-list.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import { versionOf } from '../change-input.ts';
import { type Context, operation } from '../operation.ts';
import { firstWarnings, getServer, isUnchanged, slugInput, toolInput, toRecord, versionInput } from '../shapes.ts';
import {
  indexOfTool,
  precheckTool,
  refuseBrokenViews,
  refuseTakenName,
  refuseTooLarge,
  validTool,
  viewsAfterRename,
  warningsOfChange,
} from './change-tool.ts';
import { movedWarnings, secretSteps, storeConfig } from './store-server.ts';
import { stored } from './stored-answer.ts';

const output = stored.extend({ tool: z.string().describe('Name of the tool.') });
type Answer = z.input<typeof output>;
type Input = { slug: unknown; expected_version?: unknown };

/** The fields of a tool, each of which may be left out or, where a tool need not have it, be null. */
const changedFields = Object.fromEntries(
  Object.entries(toolSchema.shape).map(([name, field]) => {
    const inner = field instanceof z.ZodDefault ? field.unwrap() : field;
    const isRemovable = field.safeParse(undefined).success;
    const changeable = (isRemovable ? inner.nullable() : inner).optional();
    return [name, field.description === undefined ? changeable : changeable.describe(field.description)];
  }),
);

/** Stores a changed list of tools. `tool` is the one that was added or changed, and `was` its name before. */
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
    `${answer.unchanged ? 'Nothing changes in' : verb} the tool "${answer.tool}" of the server "${answer.server.name}" (version ${answer.server.version}).`,
    ...answer.warnings.map((warning) => `Warning: ${warning.path}: ${warning.message}`),
    ...answer.next_steps.map((step) => `Next: ${step}`),
  ].join('\n');

const addTool = operation({
  name: 'addTool',
  summary: 'Add a tool to a hosted server',
  description: 'The other tools stay as they are, also those that somebody else changes at the same time.',
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
  summary: 'Change fields of one tool of a hosted server',
  description:
    'Fields that are sent replace the stored ones as a whole, the others stay, null removes one. name renames the tool, in the views too.',
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
  description: 'A tool that a view names is not removed. updateTool with "disabled": true hides a tool and keeps it.',
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
