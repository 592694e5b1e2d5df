import type { Problem } from '@toolhost/errors/errors';
import { addZodIssues, ProblemList } from '@toolhost/errors/problems';
import { isJsonSchemaForm } from '@toolhost/tool-config/input-schema';
import { findOwnCredentials } from '@toolhost/tool-config/server-config';
import { type Tool, toolSchema } from '@toolhost/tool-config/tool';
import { checkTool, type ToolContext } from '@toolhost/tool-config/tool-rules';
import { getField, isFields, type JsonFields } from '../document/lenient.ts';
import { estimateCandidateTokens } from '../tools/build-tool.ts';
import type { ImportedTool, ToolCandidate } from '../tools/tool-candidate.ts';

/** Maximum number of rounds of removing inputs; each round reports at most 20 problems. */
const maxRounds = 8;

/**
 * Removes everything from a tool that the configuration check would reject. Optional inputs and the response type are
 * left out; if that is not enough, the operation gets no tool. One operation therefore never makes the whole import
 * fail.
 */
export function removeRejectedInputs(candidate: ToolCandidate, ruleContext: ToolContext): ToolCandidate {
  if (!candidate.tool) return candidate;
  const rejectedInputs = new Map<string, string>();
  let { tool } = candidate;
  for (let round = 0; round < maxRounds; round++) {
    const problems = findProblems(tool, ruleContext);
    if (problems.length === 0)
      return tool === candidate.tool
        ? candidate
        : { ...candidate, tool, rejectedInputs, tokens: estimateCandidateTokens(tool) };
    for (const problem of problems) {
      const reduced = removeRejectedPart(tool, problem, rejectedInputs);
      if (!reduced) return skipCandidate(candidate, problem);
      tool = reduced;
    }
  }
  return skipCandidate(candidate, { path: 'input_schema', message: 'has too many inputs that cannot be sent' });
}

function findProblems(tool: ImportedTool, ruleContext: ToolContext): Problem[] {
  const problems = new ProblemList();
  const parsed = toolSchema.safeParse(tool, { reportInput: false });
  if (!parsed.success) addZodIssues(problems, parsed.error.issues, tool);
  checkTool(tool, ruleContext, problems);
  if (parsed.success) {
    const { variables } = ruleContext.serverWide;
    for (const problem of findOwnCredentials(parsed.data as Tool, variables)) problems.add(() => problem);
  }
  // The last entry may only count the problems beyond the limit; it has no path.
  return problems.all().filter(({ path }) => path !== '');
}

function skipCandidate(candidate: ToolCandidate, { path, message }: Problem): ToolCandidate {
  return {
    ...candidate,
    tool: undefined,
    isRejected: true,
    outcome: 'skipped',
    notes: [`${path}: ${message}`],
    tokens: 0,
  };
}

/** Returns the tool without the part that has the problem, or undefined if nothing is left. */
function removeRejectedPart(
  tool: ImportedTool,
  { path, message }: Problem,
  rejectedInputs: Map<string, string>,
): ImportedTool | undefined {
  if (path === 'headers.Accept') {
    if (tool.headers?.Accept === undefined) return tool;
    const { Accept: _, ...headers } = tool.headers;
    return { ...tool, headers };
  }
  if (!path.startsWith('input_schema.')) return undefined;
  const name = findInputName(path, tool);
  // An input that was already removed may have further problems.
  if (name === undefined) return rejectedInputs.size > 0 ? tool : undefined;
  if (isRequired(tool, name)) return undefined;
  rejectedInputs.set(getWireName(tool, name), message);
  return removeInput(tool, name);
}

function getInputs({ input_schema: schema }: ImportedTool): JsonFields {
  if (!isJsonSchemaForm(schema)) return schema;
  return isFields(schema.properties) ? schema.properties : {};
}

/**
 * Returns the input that a problem's path refers to. Rules for JSON Schema inputs write the path with or without
 * `properties`.
 */
function findInputName(path: string, tool: ImportedTool): string | undefined {
  const names = Object.keys(getInputs(tool));
  const prefixes = isJsonSchemaForm(tool.input_schema)
    ? ['input_schema.properties.', 'input_schema.']
    : ['input_schema.'];
  return prefixes
    .filter((prefix) => path.startsWith(prefix))
    .map((prefix) => findLongestMatch(path.slice(prefix.length), names))
    .find((name) => name !== undefined);
}

/** Returns the longest name that a path begins with, because names may contain dots. */
function findLongestMatch(pathInInputs: string, names: readonly string[]): string | undefined {
  return names
    .filter(
      (name) => pathInInputs === name || pathInInputs.startsWith(`${name}.`) || pathInInputs.startsWith(`${name}[`),
    )
    .toSorted((a, b) => b.length - a.length)[0];
}

function getWireName(tool: ImportedTool, name: string): string {
  const wireName = getField(getField(getInputs(tool), name), 'wire_name');
  return typeof wireName === 'string' ? wireName : name;
}

function isRequired({ input_schema: schema }: ImportedTool, name: string): boolean {
  if (!isJsonSchemaForm(schema)) return getField(getField(schema, name), 'optional') !== true;
  return Array.isArray(schema.required) && schema.required.includes(name);
}

/** Returns the tool without an input. The input for a file's name is removed with the file. */
function removeInput(tool: ImportedTool, name: string): ImportedTool {
  const fileName = getField(getField(getField(getInputs(tool), name), 'file_name'), 'argument');
  const inputs = Object.fromEntries(
    Object.entries(getInputs(tool)).filter(([otherName]) => otherName !== name && otherName !== fileName),
  );
  const { input_schema: schema } = tool;
  const reduced = { ...tool, input_schema: isJsonSchemaForm(schema) ? { ...schema, properties: inputs } : inputs };
  if (tool.body !== name) return reduced;
  const { body: _, headers: { 'Content-Type': _type, ...headers } = {}, ...remaining } = reduced;
  return { ...remaining, headers };
}
