import type { Problem } from '@toolhost/errors/errors';
import { type ProblemList, type SuggestionBudget, suggestNearestOrList } from '@toolhost/errors/problems';
import { type CompiledSchema, compileSchema } from '@toolhost/json-schema/compile-schema';
import { indexSchema, type JsonSchema } from '@toolhost/json-schema/json-schema';
import { StepBudget, StepLimitExceeded } from '@toolhost/json-schema/step-budget';
import { formatViolation, type Violation } from '@toolhost/json-schema/violations';
import { type Credentials, credentialHeaders, credentialQueryNames, getToolAuthentication } from './authentication.ts';
import { searchToolNames } from './built-in-tools.ts';
import { getBodyKind, getDestinations } from './destinations.ts';
import { foldHeaderName, isReadAs } from './http/parameter-names.ts';
import { getPlaceholderLimitProblem, getPlaceholderNames } from './http/placeholders.ts';
import { parseUrlTemplate } from './http/url-template.ts';
import { type Argument, getArguments, isJsonSchemaForm, toJsonSchema } from './input-schema.ts';
import { interpolateVariablesIn, type ServerWide, toAbsoluteUrl } from './server-wide.ts';
import { checkInterpolation } from './sizes.ts';
import type { Tool } from './tool.ts';
import { indexTools, namesNoTools, selectTools, type ToolsByName, toViewTool, type View } from './view.ts';
import { getViewNameProblem } from './view-name.ts';

/** Fields of a configuration that its views depend on. */
export type ViewContext = ServerWide &
  Credentials & {
    tools: readonly Tool[];
    views?: Record<string, View> | undefined;
  };

/** Maximum number of tools that all views of a server list in total, to bound the memory of their lists. */
const maxListedTools = 20_000;

/**
 * Adds the problems of the views of a configuration. `isChecked` selects the tools whose fixed arguments are checked:
 * tools with a valid input schema that may have changed.
 */
export function checkViews(config: ViewContext, problems: ProblemList, isChecked: (tool: Tool) => boolean): void {
  const { views = {} } = config;
  const tools = indexTools(config.tools);
  const check = createFixedArgumentCheck(config, countFixedValues(views, isChecked, tools));
  let listedCount = 0;
  for (const [name, view] of Object.entries(views)) {
    const viewProblems = problems.nested((path) => (path ? `views.${name}.${path}` : `views.${name}`));
    const nameProblem = getViewNameProblem(name, viewProblems.suggestionBudget);
    if (nameProblem !== undefined) viewProblems.add(() => ({ path: '', message: nameProblem }));
    const countBefore = problems.count;
    checkNames(view, tools, viewProblems);
    checkArguments(view, { tools, check, isChecked }, viewProblems);
    listedCount += checkSelection(view, { tools, hasValidNames: problems.count === countBefore }, viewProblems);
  }
  if (listedCount > maxListedTools) {
    const message = `list ${listedCount} tools in total; allowed: ${maxListedTools}; list fewer tools, or set tool_mode to search in larger views`;
    problems.add(() => ({ path: 'views', message }));
  }
}

/** Returns the number of fixed values to check. */
function countFixedValues(
  views: Record<string, View>,
  isChecked: (tool: Tool) => boolean,
  { byName }: ToolsByName,
): number {
  let count = 0;
  for (const view of Object.values(views)) {
    for (const entry of view.tools ?? []) {
      const { name, arguments: fixed = {} } = toViewTool(entry);
      const tool = byName.get(name);
      if (tool && isChecked(tool)) count += Object.keys(fixed).length;
    }
  }
  return count;
}

/** Reports tools and tags that the server does not have, and tools that are listed twice. */
function checkNames(view: View, { byName, byTag }: ToolsByName, problems: ProblemList): void {
  const seenNames = new Set<string>();
  for (const [index, entry] of (view.tools ?? []).entries()) {
    const { name } = toViewTool(entry);
    const path = typeof entry === 'string' ? `tools[${index}]` : `tools[${index}].name`;
    if (!byName.has(name))
      problems.add(() => ({ path, message: formatUnknownTool(name, byName, problems.suggestionBudget) }));
    else if (seenNames.has(name)) problems.add(() => ({ path, message: `"${name}" is listed twice; remove one` }));
    seenNames.add(name);
  }
  for (const [index, tag] of (view.tags ?? []).entries()) {
    if (byTag.has(tag)) continue;
    const suggestion = () =>
      suggestNearestOrList(tag, [...byTag.keys()], problems.suggestionBudget, {
        none: '; no tool has a tag',
        all: '; tags: ',
      });
    problems.add(() => ({
      path: `tags[${index}]`,
      message: `no tool has the tag ${JSON.stringify(tag)}${suggestion()}`,
    }));
  }
}

function formatUnknownTool(name: string, byName: ReadonlyMap<string, Tool>, budget: SuggestionBudget): string {
  return `the server has no tool ${JSON.stringify(name.slice(0, 100))}${suggestNearestOrList(name, [...byName.keys()], budget)}`;
}

type ArgumentContext = { tools: ToolsByName; check: FixedArgumentCheck; isChecked: (tool: Tool) => boolean };

function checkArguments(view: View, { tools, check, isChecked }: ArgumentContext, problems: ProblemList): void {
  for (const [index, entry] of (view.tools ?? []).entries()) {
    if (typeof entry === 'string' || !entry.arguments) continue;
    const tool = tools.byName.get(entry.name);
    if (!tool || !isChecked(tool)) continue;
    const argumentProblems = problems.nested((path) => `tools[${index}].arguments${path ? `.${path}` : ''}`);
    check(tool, entry.arguments, argumentProblems);
  }
}

type Selection = { tools: ToolsByName; hasValidNames: boolean };

/** Adds the problems of a view's selection as a whole. Returns the number of tools that agents see in `tools/list`. */
function checkSelection(view: View, { tools, hasValidNames }: Selection, problems: ProblemList): number {
  const add = (message: string) => problems.add((): Problem => ({ path: '', message }));
  if (namesNoTools(view) && !view.read_only) {
    add('selects no tools; set tools, tags, or "read_only": true for every tool that only reads');
    return 0;
  }
  const selected = selectTools(view, tools);
  if (selected.length === 0 && hasValidNames) add(getEmptyViewMessage(view));
  if (view.tool_mode !== 'search') return selected.length;
  const builtInNames: readonly string[] = Object.values(searchToolNames);
  for (const { tool } of selected) {
    if (builtInNames.includes(tool.name))
      add(`has the tool "${tool.name}", which is the name of a built-in tool of views in search mode; leave it out`);
  }
  return selected.filter(({ tool }) => tool.pinned).length;
}

function getEmptyViewMessage({ read_only }: View): string {
  if (!read_only) return 'has no tools; select some with tools or tags';
  return 'has no tools, because read_only keeps only tools that read and none of these does; select others, or leave read_only out';
}

/** Adds the problems of the fixed arguments of one tool in one view. Paths are argument names. */
type FixedArgumentCheck = (tool: Tool, fixed: Readonly<Record<string, unknown>>, problems: ProblemList) => void;

/**
 * Step budget for checking all fixed values of a configuration: a few milliseconds if the check runs on the event loop,
 * and up to a quarter of a second for the largest, which are checked on a thread.
 */
const minSteps = 100_000;
const stepsPerValue = 300;

/** Data of a tool that the check of its fixed arguments needs in any view. */
type PreparedTool = {
  declared: ReadonlyMap<string, Argument>;
  /** Reason why no argument can be removed from the schema; undefined if each can. */
  inseparableReason: string | undefined;
  schema: CompiledSchema;
};

/**
 * Creates a check that shares one step budget among all views of a configuration and compiles each tool's schema once.
 */
function createFixedArgumentCheck(context: ViewContext, values: number): FixedArgumentCheck {
  const steps = new StepBudget(minSteps + stepsPerValue * values);
  const preparedTools = new Map<Tool, PreparedTool>();
  return (tool, fixed, problems) => {
    const preparedTool = preparedTools.get(tool) ?? prepareTool(tool);
    preparedTools.set(tool, preparedTool);
    const checkedValues: [name: string, value: unknown][] = [];
    for (const [name, value] of Object.entries(fixed)) {
      if (!preparedTool.declared.has(name)) {
        problems.add(() => ({
          path: name,
          message: formatUnknownArgument(name, preparedTool, problems.suggestionBudget),
        }));
        continue;
      }
      const message = checkArgumentName(name, tool, preparedTool, context) ?? checkPlaceholders(value, context);
      if (message === undefined) checkedValues.push([name, interpolateVariablesIn(value, context.variables)]);
      else problems.add(() => ({ path: name, message }));
    }
    if (checkedValues.length === 0) return;
    for (const problem of findValueProblems(
      preparedTool.schema,
      Object.fromEntries(checkedValues),
      steps,
      problems.suggestionBudget,
    )) {
      const [path, ...message] = problem.split(': ');
      problems.add(() => ({ path: path as string, message: message.join(': ') }));
    }
  };
}

function prepareTool(tool: Tool): PreparedTool {
  const schema = toJsonSchema(tool.input_schema);
  const { properties = {}, $defs } = schema;
  return {
    declared: new Map(getArguments(tool.input_schema).map((argument) => [argument.name, argument])),
    inseparableReason: isJsonSchemaForm(tool.input_schema) ? getInseparableReason(schema) : undefined,
    schema: compileSchema({ type: 'object', properties, ...($defs !== undefined && { $defs }) }),
  };
}

/** Schema keywords that do not affect single arguments, or from which an argument can simply be removed. */
const separableKeywords = new Set([
  ...['$schema', '$defs', '$comment', 'type', 'properties', 'required', 'additionalProperties'],
  ...['title', 'description', 'examples', 'default', 'deprecated', 'readOnly', 'writeOnly'],
]);

function getInseparableReason(schema: JsonSchema): string | undefined {
  const keyword = Object.keys(schema).find((name) => !separableKeywords.has(name));
  const refs = (indexSchema(schema)?.nodes ?? []).map((schemaPart) => schemaPart.schema.$ref);
  const ref = refs.find((refValue) => typeof refValue === 'string' && !refValue.startsWith('#/$defs/'));
  const reason =
    keyword !== undefined ? `has ${keyword} at its root` : ref !== undefined ? `refers to ${String(ref)}` : undefined;
  if (reason === undefined) return undefined;
  return `cannot be fixed, because the tool's input_schema ${reason}, which may affect this argument; use a plain list of properties`;
}

function formatUnknownArgument(name: string, { declared }: PreparedTool, budget: SuggestionBudget): string {
  const names = [...declared.values()].filter(({ wire }) => wire.value === undefined).map((argument) => argument.name);
  return `the tool has no argument ${JSON.stringify(name.slice(0, 100))}${suggestNearestOrList(name, names, budget)}`;
}

function checkArgumentName(
  name: string,
  tool: Tool,
  { declared, inseparableReason: reason }: PreparedTool,
  context: ViewContext,
) {
  const argument = declared.get(name);
  if (!argument) return undefined;
  if (argument.wire.value !== undefined) return 'is already a constant of the tool, which a view cannot change';
  if (reason !== undefined) return reason;
  return isCredential(argument, tool, declared, context)
    ? 'has the same location as the credential in authentication, so it is never sent; leave it out'
    : undefined;
}

/** Returns true if a request omits the argument because its name is that of the credential. */
function isCredential(
  { name, wire }: Argument,
  tool: Tool,
  declared: PreparedTool['declared'],
  context: ViewContext,
): boolean {
  const wireName = wire.wire_name ?? name;
  const authentication = getToolAuthentication(context, tool);
  const isInHeader = credentialHeaders(authentication).has(foldHeaderName(wireName));
  if (!isInHeader && !isReadAs(wireName, credentialQueryNames(authentication))) return false;
  const names = [...declared.keys()];
  const { template } = parseUrlTemplate(toAbsoluteUrl(tool.url, context), names);
  const to = getDestinations(tool, [...declared.values()], { inUrl: template?.names ?? [], inBody: [] }).get(name);
  if (to === 'header') return isInHeader;
  const isForm = ['form', 'multipart'].includes(getBodyKind(tool));
  return to === 'query' || (to === 'body' && isForm);
}

/** Checks a fixed value, which is sent unchanged except for the server's variables. */
function checkPlaceholders(value: unknown, { variables = {} }: ViewContext): string | undefined {
  const unknown = getPlaceholderNames(value).find((name) => !Object.hasOwn(variables, name));
  if (unknown === undefined) return getPlaceholderLimitProblem(value) ?? checkInterpolation(value, variables);
  return `contains {{${unknown}}}, which is not a variable of the server; put a secret into the tool itself, as a constant`;
}

/** Returns each problem as `path: message`. */
function findValueProblems(
  schema: CompiledSchema,
  values: object,
  steps: StepBudget,
  budget: SuggestionBudget,
): string[] {
  try {
    if (schema.isValid(values, steps)) return [];
    return [
      ...new Set(
        schema.violations(values, steps, 'faults').map((violation: Violation) => formatViolation(violation, budget)),
      ),
    ];
  } catch (error) {
    if (!(error instanceof StepLimitExceeded)) throw error;
    const firstName = Object.keys(values)[0] ?? '';
    return [`${firstName}: takes more steps to check than a configuration may use; fix shorter or fewer values`];
  }
}
