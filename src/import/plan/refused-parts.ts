import { isJsonSchemaForm } from '../../domain/config/input-schema.ts';
import { ownCredentialProblems } from '../../domain/config/server-config.ts';
import { type Tool, toolSchema } from '../../domain/config/tool.ts';
import { checkTool, type ToolSurroundings } from '../../domain/config/tool-rules.ts';
import { addIssues, ProblemList } from '../../domain/problems.ts';
import type { Problem } from '../../errors.ts';
import { field, isFields, type JsonFields } from '../document/lenient.ts';
import type { ImportedTool, MadeTool } from '../tools/made-tool.ts';
import { tokensOfTool } from '../tools/make-tool.ts';

/** Rounds of leaving inputs out; each finds at most twenty problems. */
const mostRounds = 8;

/**
 * A tool without what the check of configurations would refuse: optional inputs and the type of the answer are left out,
 * and otherwise there is no tool. So one operation never makes the whole import refused.
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

/** The tool without the part that has the problem; undefined where nothing is left without it. */
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
  // Another problem of an input that is left out by now.
  if (name === undefined) return refused.size > 0 ? tool : undefined;
  if (isRequired(tool, name)) return undefined;
  refused.set(wireNameOf(tool, name), message);
  return withoutInput(tool, name);
}

function inputsOf({ input_schema: schema }: ImportedTool): JsonFields {
  if (!isJsonSchemaForm(schema)) return schema;
  return isFields(schema.properties) ? schema.properties : {};
}

/** The input that the path of a problem names. Rules for a form of JSON Schema write its path with or without `properties`. */
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

/** Names may have dots, so the longest one that fits is meant. */
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

/** The tool without an input; the name of a file goes with the file. */
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
