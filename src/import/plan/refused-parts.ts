import { isJsonSchemaForm } from '../../domain/config/input-schema.ts';
import { ownCredentialProblems } from '../../domain/config/server-config.ts';
import { type Tool, toolSchema } from '../../domain/config/tool.ts';
import { checkTool, type ToolSurroundings } from '../../domain/config/tool-rules.ts';
import { addIssues, ProblemList } from '../../domain/problems.ts';
import type { Problem } from '../../errors.ts';
import { field, isFields, type JsonFields } from '../document/lenient.ts';
import type { ImportedTool, MadeTool } from '../tools/made-tool.ts';
import { tokensOfTool } from '../tools/make-tool.ts';

/** Maximum number of rounds of removing inputs; each round reports at most 20 problems. */
const mostRounds = 8;

/**
 * Removes everything from a tool that the configuration check would reject. Optional inputs and the response type are
 * left out; if that is not enough, the operation gets no tool. One operation therefore never makes the whole import
 * fail.
 */
export function withoutRefused(made: MadeTool, surroundings: ToolSurroundings): MadeTool {
  if (!made.tool) return made;
  const refused = new Map<string, string>();
  let { tool } = made;
  for (let round = 0; round < mostRounds; round++) {
    const problems = problemsOf(tool, surroundings);
    if (problems.length === 0)
      return tool === made.tool ? made : { ...made, tool, refused, tokens: tokensOfTool(tool) };
    for (const problem of problems) {
      const smaller = without(tool, problem, refused);
      if (!smaller) return skipped(made, problem);
      tool = smaller;
    }
  }
  return skipped(made, { path: 'input_schema', message: 'has too many inputs that cannot be sent' });
}

function problemsOf(tool: ImportedTool, surroundings: ToolSurroundings): Problem[] {
  const problems = new ProblemList();
  const parsed = toolSchema.safeParse(tool, { reportInput: false });
  if (!parsed.success) addIssues(problems, parsed.error.issues, tool);
  checkTool(tool, surroundings, problems);
  if (parsed.success) {
    const { variables } = surroundings.wide;
    for (const problem of ownCredentialProblems(parsed.data as Tool, variables)) problems.add(() => problem);
  }
  // The last line may only count further problems.
  return problems.all().filter(({ path }) => path !== '');
}

function skipped(made: MadeTool, { path, message }: Problem): MadeTool {
  return { ...made, tool: undefined, isRefused: true, outcome: 'skipped', notes: [`${path}: ${message}`], tokens: 0 };
}

/** Returns the tool without the part that has the problem, or undefined if nothing is left. */
function without(
  tool: ImportedTool,
  { path, message }: Problem,
  refused: Map<string, string>,
): ImportedTool | undefined {
  if (path === 'headers.Accept') {
    if (tool.headers?.Accept === undefined) return tool;
    const { Accept: _, ...headers } = tool.headers;
    return { ...tool, headers };
  }
  if (!path.startsWith('input_schema.')) return undefined;
  const name = inputAt(path, tool);
  // Another problem of an input that was already left out.
  if (name === undefined) return refused.size > 0 ? tool : undefined;
  if (isRequired(tool, name)) return undefined;
  refused.set(wireNameOf(tool, name), message);
  return withoutInput(tool, name);
}

function inputsOf({ input_schema: schema }: ImportedTool): JsonFields {
  if (!isJsonSchemaForm(schema)) return schema;
  return isFields(schema.properties) ? schema.properties : {};
}

/**
 * Returns the input that a problem's path refers to. Rules for JSON Schema inputs write the path with or without
 * `properties`.
 */
function inputAt(path: string, tool: ImportedTool): string | undefined {
  const names = Object.keys(inputsOf(tool));
  const starts = isJsonSchemaForm(tool.input_schema)
    ? ['input_schema.properties.', 'input_schema.']
    : ['input_schema.'];
  return starts
    .filter((start) => path.startsWith(start))
    .map((start) => longestFit(path.slice(start.length), names))
    .find((name) => name !== undefined);
}

/** Returns the longest name that matches. Names may contain dots. */
function longestFit(rest: string, names: readonly string[]): string | undefined {
  return names
    .filter((name) => rest === name || rest.startsWith(`${name}.`) || rest.startsWith(`${name}[`))
    .toSorted((a, b) => b.length - a.length)[0];
}

function wireNameOf(tool: ImportedTool, name: string): string {
  const wireName = field(field(inputsOf(tool), name), 'wire_name');
  return typeof wireName === 'string' ? wireName : name;
}

function isRequired({ input_schema: schema }: ImportedTool, name: string): boolean {
  if (!isJsonSchemaForm(schema)) return field(field(schema, name), 'optional') !== true;
  return Array.isArray(schema.required) && schema.required.includes(name);
}

/** Returns the tool without an input. The input for a file's name is removed with the file. */
function withoutInput(tool: ImportedTool, name: string): ImportedTool {
  const fileName = field(field(field(inputsOf(tool), name), 'file_name'), 'argument');
  const inputs = Object.fromEntries(
    Object.entries(inputsOf(tool)).filter(([other]) => other !== name && other !== fileName),
  );
  const { input_schema: schema } = tool;
  const smaller = { ...tool, input_schema: isJsonSchemaForm(schema) ? { ...schema, properties: inputs } : inputs };
  if (tool.body !== name) return smaller;
  const { body: _, headers: { 'Content-Type': _type, ...headers } = {}, ...rest } = smaller;
  return { ...rest, headers };
}
