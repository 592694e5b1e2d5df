import { tooLargeProblem } from '../../domain/config/compiled-size.ts';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import type { Tool } from '../../domain/config/tool.ts';
import { type ViewTool, viewToolOf } from '../../domain/config/view.ts';
import { checkViews } from '../../domain/config/view-rules.ts';
import { foreignDocument } from '../../domain/mistakes/foreign-document.ts';
import { nearestOrAll, newGuesses } from '../../domain/problems/did-you-mean.ts';
import { ProblemList } from '../../domain/problems/problems.ts';
import { estimatedTokensInTurns, viewWarnings, type Warning, warningsOfList } from '../../domain/warnings/warnings.ts';
import { AppError, invalid } from '../../errors.ts';
import { findSecrets } from '../../store/servers/secrets.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import type { Context } from '../operation.ts';
import { checkConfig, precheck, warningsOfStored } from './check-config.ts';
import type { Precheck } from './checked-config.ts';
import { type RawFields, toolOfFields, withOnly } from './sent-config.ts';

/** An input that adds a tool, or changes the tool `before`. */
type ToolInput = { input: RawFields; before?: Tool | undefined };

/** The configuration to check: that of the server with the new tool only. */
function configToCheck({ config: { tools: _, ...config } }: StoredServer, { input, before }: ToolInput) {
  return withOnly(config, toolOfFields(input, before));
}

/** Index of a tool. @throws AppError notFound */
export function indexOfTool({ config }: StoredServer, name: string): number {
  const index = config.tools.findIndex((tool) => tool.name === name);
  if (index >= 0) return index;
  const names = config.tools.map((tool) => tool.name);
  throw new AppError('notFound', `the server has no such tool${nearestOrAll(name, names, newGuesses())}`);
}

/** Checks a large tool before the transaction that stores it. */
export async function precheckTool(
  context: Context,
  current: StoredServer,
  given: ToolInput,
): Promise<Precheck | undefined> {
  const stored = await namesOfSecrets(context, current);
  return precheck(context, configToCheck(current, given), { current, stored, isTool: true });
}

/** The tool with its defaults. Paths of problems are those of its fields. @throws AppError invalid with all problems */
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

/** @throws AppError invalid when another tool has the name; `index` is that of the tool itself */
export function refuseTakenName({ config }: StoredServer, name: string, index?: number): void {
  const other = config.tools.findIndex((tool) => tool.name === name);
  if (other < 0 || other === index) return;
  throw invalid([
    { path: 'name', message: `"${name}" is the name of another tool already; change that one with updateTool` },
  ]);
}

/** The views of a server after one of its tools got another name: they go on naming that tool. */
export function viewsAfterRename({ config }: StoredServer, before: string, after: string): ServerConfig['views'] {
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
 * Refuses a change of one tool that a view does not allow: a view says by name what agents get, so no change of a tool
 * takes something out of it silently. @throws AppError invalid
 */
export function refuseBrokenViews(config: ServerConfig, changed: string): void {
  if (!config.views) return;
  const problems = new ProblemList();
  checkViews(config, problems, ({ name }) => name === changed);
  if (problems.count > 0)
    throw invalid(
      problems.all(),
      'Nothing was stored; a view needs the tool as it is, so change the views first with updateMcpServer',
    );
}

/** Refuses a change of one tool after which the server is too large when it is filled or compiled. @throws AppError invalid */
export function refuseTooLarge(config: ServerConfig): void {
  const message = tooLargeProblem(config);
  if (message !== undefined)
    throw invalid([{ path: '', message }], 'Nothing was stored; the server would be too large');
}

/** The warnings about one tool and about the list of tools. Paths are those of fields of the tool, or `tools`. */
export async function warningsOfChange(context: Context, server: StoredServer, tool?: Tool): Promise<Warning[]> {
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
