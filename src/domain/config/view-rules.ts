import type { Problem } from '../../errors.ts';
import { foldedHeader, isReadAs } from '../http/parameter-names.ts';
import { crowdedProblem, placeholderNames } from '../http/placeholders.ts';
import { parseUrlTemplate } from '../http/url-template.ts';
import { type Guesses, nearestOrAll, type ProblemList } from '../problems.ts';
import { type CompiledSchema, compileSchema } from '../schema/compile-schema.ts';
import { type Fault, faultText } from '../schema/faults.ts';
import { indexSchema, type JsonSchema } from '../schema/json-schema.ts';
import { searchToolNames } from '../search/own-tools.ts';
import { viewNameProblem } from '../view-name.ts';
import { Steps, TooMuchWork } from '../work/steps.ts';
import { authenticationOfTool, type Credentials, credentialHeaders, credentialQueryNames } from './authentication.ts';
import { bodyKindOf, destinationsOf } from './destinations.ts';
import { type Argument, argumentsOf, isJsonSchemaForm, toJsonSchema } from './input-schema.ts';
import { absoluteUrl, fillVariablesIn, type ServerWide } from './server-wide.ts';
import { fillingProblem } from './sizes.ts';
import type { Tool } from './tool.ts';
import { hasEveryTool, indexTools, type ToolsByName, toolsOfView, type View, viewToolOf } from './view.ts';

/** Fields of a configuration that its views depend on. */
export type ViewContext = ServerWide &
  Credentials & {
    tools: readonly Tool[];
    views?: Record<string, View> | undefined;
  };

/** Maximum number of tools that all views of a server list in total, to bound the memory of their lists. */
const mostListed = 20_000;

/**
 * Adds the problems of the views of a configuration. `isChecked` selects the tools whose fixed arguments are checked:
 * tools with a valid input schema that may have changed.
 */
export function checkViews(config: ViewContext, problems: ProblemList, isChecked: (tool: Tool) => boolean): void {
  const { views = {} } = config;
  const tools = indexTools(config.tools);
  const check = createFixedArgumentCheck(config, countOfFixed(views, isChecked, tools));
  let listed = 0;
  for (const [name, view] of Object.entries(views)) {
    const below = problems.within((path) => (path ? `views.${name}.${path}` : `views.${name}`));
    const fault = viewNameProblem(name, below.guesses);
    if (fault !== undefined) below.add(() => ({ path: '', message: fault }));
    const before = problems.count;
    checkNames(view, tools, below);
    checkArguments(view, { tools, check, isChecked }, below);
    listed += checkSelection(view, { tools, isKnown: problems.count === before }, below);
  }
  if (listed > mostListed) {
    const message = `list ${listed} tools in total; allowed: ${mostListed}; list fewer tools, or set tool_mode to search in larger views`;
    problems.add(() => ({ path: 'views', message }));
  }
}

/** Returns the number of fixed values to check. */
function countOfFixed(
  views: Record<string, View>,
  isChecked: (tool: Tool) => boolean,
  { byName }: ToolsByName,
): number {
  let count = 0;
  for (const view of Object.values(views)) {
    for (const entry of view.tools ?? []) {
      const { name, arguments: fixed = {} } = viewToolOf(entry);
      const tool = byName.get(name);
      if (tool && isChecked(tool)) count += Object.keys(fixed).length;
    }
  }
  return count;
}

/** Reports tools and tags that the server does not have, and tools that are listed twice. */
function checkNames(view: View, { byName, byTag }: ToolsByName, problems: ProblemList): void {
  const seen = new Set<string>();
  for (const [index, entry] of (view.tools ?? []).entries()) {
    const { name } = viewToolOf(entry);
    const path = typeof entry === 'string' ? `tools[${index}]` : `tools[${index}].name`;
    if (!byName.has(name)) problems.add(() => ({ path, message: unknownTool(name, byName, problems.guesses) }));
    else if (seen.has(name)) problems.add(() => ({ path, message: `"${name}" is listed twice; remove one` }));
    seen.add(name);
  }
  for (const [index, tag] of (view.tags ?? []).entries()) {
    if (byTag.has(tag)) continue;
    const near = () =>
      nearestOrAll(tag, [...byTag.keys()], problems.guesses, { none: '; no tool has a tag', all: '; tags: ' });
    problems.add(() => ({
      path: `tags[${index}]`,
      message: `no tool has the tag ${JSON.stringify(tag)}${near()}`,
    }));
  }
}

function unknownTool(name: string, byName: ReadonlyMap<string, Tool>, guesses: Guesses): string {
  return `the server has no tool ${JSON.stringify(name.slice(0, 100))}${nearestOrAll(name, [...byName.keys()], guesses)}`;
}

type ArgumentContext = { tools: ToolsByName; check: FixedArgumentCheck; isChecked: (tool: Tool) => boolean };

function checkArguments(view: View, { tools, check, isChecked }: ArgumentContext, problems: ProblemList): void {
  for (const [index, entry] of (view.tools ?? []).entries()) {
    if (typeof entry === 'string' || !entry.arguments) continue;
    const tool = tools.byName.get(entry.name);
    if (!tool || !isChecked(tool)) continue;
    const below = problems.within((path) => `tools[${index}].arguments${path ? `.${path}` : ''}`);
    check(tool, entry.arguments, below);
  }
}

type Selection = { tools: ToolsByName; isKnown: boolean };

/** Adds the problems of the list as a whole. Returns the number of tools that it lists. */
function checkSelection(view: View, { tools, isKnown }: Selection, problems: ProblemList): number {
  const add = (message: string) => problems.add((): Problem => ({ path: '', message }));
  if (hasEveryTool(view) && !view.read_only) {
    add('selects no tools; set tools, tags, or "read_only": true for every tool that only reads');
    return 0;
  }
  const selected = toolsOfView(view, tools);
  if (selected.length === 0 && isKnown) add(emptyView(view));
  if (view.tool_mode !== 'search') return selected.length;
  const own: readonly string[] = Object.values(searchToolNames);
  for (const { tool } of selected) {
    if (own.includes(tool.name))
      add(`has the tool "${tool.name}", which is the name of a built-in tool of views in search mode; leave it out`);
  }
  return selected.filter(({ tool }) => tool.pinned).length;
}

function emptyView({ read_only }: View): string {
  if (!read_only) return 'has no tools; select some with tools or tags';
  return 'has no tools, because read_only keeps only tools that read and none of these does; select others, or leave read_only out';
}

/** Adds the problems of the fixed arguments of one tool in one view. Paths are argument names. */
type FixedArgumentCheck = (tool: Tool, fixed: Readonly<Record<string, unknown>>, problems: ProblemList) => void;

/**
 * Step budget for checking all fixed values of a configuration: a few milliseconds if the check runs on the event loop,
 * and up to a quarter of a second for the largest, which are checked on a thread.
 */
const leastSteps = 100_000;
const stepsOfValue = 300;

/** Data of a tool that the check of its fixed arguments needs in any view. */
type Prepared = {
  declared: ReadonlyMap<string, Argument>;
  /** Reason why no argument can be removed from the schema, or undefined. */
  whyWhole: string | undefined;
  schema: CompiledSchema;
};

/**
 * Creates a check that shares one step budget among all views of a configuration and compiles each tool's schema once.
 */
function createFixedArgumentCheck(context: ViewContext, values: number): FixedArgumentCheck {
  const steps = new Steps(leastSteps + stepsOfValue * values);
  const prepared = new Map<Tool, Prepared>();
  return (tool, fixed, problems) => {
    const of = prepared.get(tool) ?? prepare(tool);
    prepared.set(tool, of);
    const known: [name: string, value: unknown][] = [];
    for (const [name, value] of Object.entries(fixed)) {
      if (!of.declared.has(name)) {
        problems.add(() => ({ path: name, message: unknownArgument(name, of, problems.guesses) }));
        continue;
      }
      const message = faultOfName(name, tool, of, context) ?? faultOfText(value, context);
      if (message === undefined) known.push([name, fillVariablesIn(value, context.variables)]);
      else problems.add(() => ({ path: name, message }));
    }
    if (known.length === 0) return;
    for (const fault of faultsOf(of.schema, Object.fromEntries(known), steps, problems.guesses)) {
      const [path, ...message] = fault.split(': ');
      problems.add(() => ({ path: path as string, message: message.join(': ') }));
    }
  };
}

function prepare(tool: Tool): Prepared {
  const schema = toJsonSchema(tool.input_schema);
  const { properties = {}, $defs } = schema;
  return {
    declared: new Map(argumentsOf(tool.input_schema).map((argument) => [argument.name, argument])),
    whyWhole: isJsonSchemaForm(tool.input_schema) ? whyWhole(schema) : undefined,
    schema: compileSchema({ type: 'object', properties, ...($defs !== undefined && { $defs }) }),
  };
}

/** Schema keywords that do not affect single arguments, or from which an argument can simply be removed. */
const separable = new Set([
  ...['$schema', '$defs', '$comment', 'type', 'properties', 'required', 'additionalProperties'],
  ...['title', 'description', 'examples', 'default', 'deprecated', 'readOnly', 'writeOnly'],
]);

function whyWhole(schema: JsonSchema): string | undefined {
  const keyword = Object.keys(schema).find((name) => !separable.has(name));
  const refs = (indexSchema(schema)?.parts ?? []).map((part) => part.schema.$ref);
  const ref = refs.find((one) => typeof one === 'string' && !one.startsWith('#/$defs/'));
  const why =
    keyword !== undefined ? `has ${keyword} at its root` : ref !== undefined ? `refers to ${String(ref)}` : undefined;
  if (why === undefined) return undefined;
  return `cannot be fixed, because the tool's input_schema ${why}, which may affect this argument; use a plain list of properties`;
}

function unknownArgument(name: string, { declared }: Prepared, guesses: Guesses): string {
  const names = [...declared.values()].filter(({ wire }) => wire.value === undefined).map((one) => one.name);
  return `the tool has no argument ${JSON.stringify(name.slice(0, 100))}${nearestOrAll(name, names, guesses)}`;
}

function faultOfName(name: string, tool: Tool, { declared, whyWhole: why }: Prepared, context: ViewContext) {
  const argument = declared.get(name);
  if (!argument) return undefined;
  if (argument.wire.value !== undefined) return 'is already a constant of the tool, which a view cannot change';
  if (why !== undefined) return why;
  return isCredential(argument, tool, declared, context)
    ? 'has the same location as the credential in authentication, so it is never sent; leave it out'
    : undefined;
}

/** Returns true if a request omits the argument because its name is that of the credential. */
function isCredential(
  { name, wire }: Argument,
  tool: Tool,
  declared: Prepared['declared'],
  context: ViewContext,
): boolean {
  const wireName = wire.wire_name ?? name;
  const authentication = authenticationOfTool(context, tool);
  const inHeader = credentialHeaders(authentication).has(foldedHeader(wireName));
  if (!inHeader && !isReadAs(wireName, credentialQueryNames(authentication))) return false;
  const names = [...declared.keys()];
  const { template } = parseUrlTemplate(absoluteUrl(tool.url, context), names);
  const to = destinationsOf(tool, [...declared.values()], { inUrl: template?.names ?? [], inBody: [] }).get(name);
  if (to === 'header') return inHeader;
  const isForm = ['form', 'multipart'].includes(bodyKindOf(tool));
  return to === 'query' || (to === 'body' && isForm);
}

/** Checks a fixed value, which is sent unchanged except for the server's variables. */
function faultOfText(value: unknown, { variables = {} }: ViewContext): string | undefined {
  const unknown = placeholderNames(value).find((name) => !Object.hasOwn(variables, name));
  if (unknown === undefined) return crowdedProblem(value) ?? fillingProblem(value, variables);
  return `contains {{${unknown}}}, which is not a variable of the server; put a secret into the tool itself, as a constant`;
}

/** Returns each problem as `path: message`. */
function faultsOf(schema: CompiledSchema, values: object, steps: Steps, guesses: Guesses): string[] {
  try {
    if (schema.fits(values, steps)) return [];
    return [...new Set(schema.faults(values, steps, 'faults').map((fault: Fault) => faultText(fault, guesses)))];
  } catch (error) {
    if (!(error instanceof TooMuchWork)) throw error;
    const first = Object.keys(values)[0] ?? '';
    return [`${first}: takes more steps to check than a configuration may use; fix shorter or fewer values`];
  }
}
