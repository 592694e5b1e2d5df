import { addedArguments, leftOutText } from '../domain/added-arguments.ts';
import { covers } from '../domain/credentials/credential.ts';
import { bodyLimits, configurationLimits, shortLimits } from '../domain/json/body-limits.ts';
import { isLargerThan } from '../domain/json/json.ts';
import { longBytesOf } from '../domain/json/long-value.ts';
import {
  jsonResult,
  type LoginHints,
  type McpEndpoint,
  type McpServer,
  type ToolCall,
  type ToolResult,
  textResult,
  withLines,
} from '../domain/mcp.ts';
import { nextTurn } from '../domain/work/next-turn.ts';
import { AppError, Unauthenticated } from '../errors.ts';
import { operationList } from '../operations/index.ts';
import type { Actor, Operation } from '../operations/operation.ts';
import { type Runner, runOperation, type ServingRunner, takesShortInput } from '../operations/run-operation.ts';
import { rareFields } from '../operations/servers/describe-configuration.ts';
import { authenticate, type ManagerCredentials, mayManage } from './actors.ts';

const instructions =
  'Manage hosted MCP servers: each is a configuration (name, slug, authentication, tools) that turns HTTP requests into tools. ' +
  'Use checkMcpServer to check a configuration, createMcpServer to store it, addTool, updateTool, and removeTool to change one of its tools, previewToolCall to see a request without sending it, and callTool to try it. ' +
  'describeConfiguration explains every field of a configuration, part by part, with an example. An input without a description is explained there or at an earlier tool that has the same input.';

function annotationsOf(op: Operation): object {
  return {
    readOnlyHint: op.effect === 'read',
    destructiveHint: op.destructive === true,
    openWorldHint: op.effect === 'call',
    // Only meaningful for changes, and false if absent.
    ...(op.effect === 'write' && /^(PUT|DELETE)$/.test(op.route.method) && { idempotentHint: true }),
  };
}

/**
 * Creates the management server, which offers the operations as MCP tools with the same protocol implementation as
 * every hosted server.
 */
export async function createManagementServer(
  runner: ServingRunner,
  version: string,
  credentials: ManagerCredentials,
  hints: LoginHints,
): Promise<McpEndpoint> {
  const offered = operationList.filter((op) => op.isTool);
  const byName = new Map(offered.map((op) => [op.name, op]));
  const toolNames = [...byName.keys()];
  const info = JSON.stringify({ name: 'toolhost', title: 'Toolhost management', version });
  const tools = await toolsJson(offered);
  const serverFor = (actor: Actor): McpServer => ({
    source: byName,
    party: { workspaceId: actor.workspaceId },
    info,
    instructions,
    tools: () => tools,
    toolNames,
    // The operation that a message calls is known only after the message was parsed.
    ...(covers(actor.scopes, 'manage:write') && { bodyLimits: configurationLimits }),
    readLong: (body) => runner.readLong(body, actor, { limits: configurationLimits, isMessage: true }),
    mirrored: (name) => (byName.has(name) ? [] : undefined),
    call: (call) => runAsTool(runner, byName.get(call.name), actor, call),
  });
  return {
    hints,
    async admit({ headers }, look) {
      const actor = await authenticate(headers, credentials, look);
      if (!mayManage(actor))
        throw new Unauthenticated('forbidden', 'the API key does not have the scope manage; use another key');
      return serverFor(actor);
    },
    about: { name: 'Toolhost management', description: instructions, access: 'management', tools: offered.length },
  };
}

/**
 * Serializes the tool list. Agents pay for it with each conversation, so it has no output schemas and only names rare
 * fields of a configuration. Yields to the event loop between schemas, because creating all of them takes 60 ms.
 */
async function toolsJson(offered: readonly Operation[]): Promise<Buffer> {
  const tools: string[] = [];
  const said = new Set(rareFields().map(([name, description]) => meaningOf(name, description)));
  for (const op of offered) {
    const tool = {
      name: op.name,
      description: [op.summary, op.description].filter((text) => text !== undefined).join('. '),
      inputSchema: shortSchema(op.inputSchema(), said),
      annotations: annotationsOf(op),
    };
    tools.push(JSON.stringify(tool));
    await nextTurn();
  }
  return Buffer.from(`[${tools.join(',')}]`);
}

/** Refuses large arguments. Only configurations may be larger than other bodies. @throws AppError tooLarge */
function refuseLarge(op: Operation, args: object, bytesIn: number): void {
  const isShort = takesShortInput(op);
  const { bytes, elements } = isShort ? shortLimits : bodyLimits;
  // Each value takes at least one byte, so a message with this many bytes has no more values.
  if (bytesIn <= elements) return;
  const long = longBytesOf(args);
  const most = { values: elements, characters: bytes - long };
  if (bytesIn <= bodyLimits.bytes && (long === 0 || !isShort) && !isLargerThan(args, most)) return;
  throw new AppError(
    'tooLarge',
    `the arguments are larger than ${bytes} bytes or ${elements} elements; send less per call`,
  );
}

/** Runs an operation as a tool. Refusals that the agent can act on become results, which its model can read. */
async function runAsTool(
  runner: Runner,
  op: Operation | undefined,
  actor: Actor,
  { args, bytesIn, requestId }: ToolCall,
): Promise<ToolResult> {
  if (!op) return textResult('there is no such tool', true);
  try {
    if (!('tools' in op.input.shape)) refuseLarge(op, args, bytesIn);
    const added = addedArguments(args, Object.keys(op.input.shape), op.effect === 'read');
    const input = Object.fromEntries(Object.entries(args).filter(([name]) => !added.includes(name)));
    const output = await runOperation(runner, op, { actor, input, requestId });
    return withLines(jsonResult(output, op.say?.(output)), leftOutText(added, 'not declared by the tool'));
  } catch (error) {
    if (!(error instanceof AppError) || error.kind === 'unavailable' || error.kind === 'tooMany') throw error;
    // The scope of a login can be extended, so the challenge names the scopes (MCP 2026-07-28, authorization, step-up).
    if (actor.kind === 'user' && !covers(actor.scopes, op.scope)) throw new Unauthenticated('forbidden', error.message);
    if (error.problems.length < 2) return textResult(error.message, true);
    const lines = error.problems.map((problem) => `- ${problem.path ? `${problem.path}: ` : ''}${problem.message}`);
    const head = error.message.slice(0, error.message.indexOf(':'));
    return textResult([head, ...lines].join('\n'), true);
  }
}

type JsonObject = { [key: string]: unknown };

/** Keywords that a short schema keeps. Bounds are omitted, because a refusal names them. */
const ofValue = ['type', 'enum', 'const', 'format', 'default'];

/**
 * Shortens the input schema of a tool, for a list that agents pay for with each conversation. It has one level: an
 * object is only described, with the names of its fields. Meanings in `describedMeanings` (see `getMeaningKey`) are not repeated. Every
 * input that the complete schema accepts is valid for the short one too.
 */
function shortSchema({ properties = {}, required }: JsonObject, said: Set<string>): JsonObject {
  const inputs = Object.entries(properties as JsonObject).map(([name, whole]): [string, JsonObject] => {
    const kinds = kindsOf(whole as JsonObject);
    const text = kinds.find(({ description }) => description !== undefined)?.description as string | undefined;
    const meaning = text && meaningOf(name, text);
    if (meaning && said.has(meaning)) return [name, shortValue(kinds, ['type'])];
    if (meaning) said.add(meaning);
    const description = [text, fieldsOf(kinds)].filter(Boolean).join(' ');
    return [name, { ...shortValue(kinds, ofValue), ...(description !== '' && { description }) }];
  });
  return { type: 'object', properties: Object.fromEntries(inputs), ...(required !== undefined && { required }) };
}

/** Returns a key for the meaning of an input, independent of the tool that has it. */
export function meaningOf(name: string, description: string | undefined): string {
  return `${name}: ${description}`;
}

/** Returns the alternatives of a value, however they are nested; the schema itself if there are none. */
function kindsOf(schema: JsonObject): JsonObject[] {
  const { anyOf, ...rest } = schema;
  if (anyOf === undefined) return [schema];
  return (anyOf as JsonObject[]).flatMap((kind) => kindsOf({ ...rest, ...kind }));
}

/**
 * Shortens the schema of a value to the given keywords, without its contents. A reference, and a value of any type,
 * becomes `{}`.
 */
function shortValue(kinds: readonly JsonObject[], keywords: readonly string[]): JsonObject {
  const [kind = {}, other, ...more] = kinds.map((schema): JsonObject => {
    const kept = Object.entries(schema).filter(([keyword]) => keywords.includes(keyword));
    const items = schema.type === 'array' && { items: shortValue(kindsOf(schema.items as JsonObject), ['type']) };
    return { ...Object.fromEntries(kept), ...items };
  });
  if (other === undefined) return kind;
  if (more.length === 0 && other.type === 'null' && kind.enum === undefined)
    return kind.type === undefined ? kind : { ...kind, type: [kind.type, 'null'] };
  return { anyOf: [kind, other, ...more] };
}

/** Lists the names of the fields of the objects in a value. */
function fieldsOf(kinds: readonly JsonObject[]): string | undefined {
  const object = kinds.map(objectIn).find((found) => found !== undefined);
  if (object === undefined) return undefined;
  const required = new Set(object.required as string[] | undefined);
  const names = Object.keys(object.properties as object).map((name) => (required.has(name) ? `${name}*` : name));
  return `Fields: ${names.join(', ')}.`;
}

/** Finds the schema of an object with fields: the value itself, or its entries. */
function objectIn(schema: JsonObject): JsonObject | undefined {
  if (schema.properties) return schema;
  const entries = schema.items ?? schema.additionalProperties;
  return typeof entries === 'object' && entries !== null ? objectIn(entries as JsonObject) : undefined;
}
