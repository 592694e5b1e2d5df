import { hasScope } from '@toolhost/credentials/credential';
import { AppError, Unauthenticated } from '@toolhost/errors/errors';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { bodyLimits, configurationLimits, eventLoopLimits } from '@toolhost/json/body-limits';
import { isLargerThan } from '@toolhost/json/json';
import { countLargeValueBytes } from '@toolhost/json/large-value';
import {
  appendTextBlocks,
  type LoginHints,
  type McpEndpoint,
  type McpServer,
  type ToolCall,
  type ToolResult,
  toJsonResult,
  toTextResult,
} from '@toolhost/mcp-protocol/mcp';
import { findIgnoredArguments, formatIgnoredArguments } from '@toolhost/tool-config/added-arguments';
import { operationList } from '../operations/index.ts';
import type { Actor, Operation } from '../operations/operation.ts';
import { hasShortInput, type Runner, runOperation, type ServingRunner } from '../operations/run-operation.ts';
import { getRareFields } from '../operations/servers/describe-configuration.ts';
import { authenticate, canManage, type ManagerCredentials } from './actors.ts';

const instructions =
  'Manage hosted MCP servers: each is a configuration (name, slug, authentication, tools) that turns HTTP requests into tools. ' +
  'Use checkMcpServer to check a configuration, createMcpServer to store it, addTool, updateTool, and removeTool to change one of its tools, previewToolCall to see a request without sending it, and callTool to try it. ' +
  'describeConfiguration explains every field of a configuration, part by part, with an example. An input without a description is explained there or at an earlier tool that has the same input.';

function getAnnotations(op: Operation): object {
  return {
    readOnlyHint: op.effect === 'read',
    destructiveHint: op.destructive === true,
    openWorldHint: op.effect === 'call',
    // MCP defines this hint only for changes, and as false if absent.
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
  loginHints: LoginHints,
): Promise<McpEndpoint> {
  const toolOperations = operationList.filter((op) => op.isTool);
  const operationsByName = new Map(toolOperations.map((op) => [op.name, op]));
  const toolNames = [...operationsByName.keys()];
  const info = JSON.stringify({ name: 'toolhost', title: 'Toolhost management', version });
  const tools = await serializeTools(toolOperations);
  const createServerFor = (actor: Actor): McpServer => ({
    source: operationsByName,
    tenantKey: { workspaceId: actor.workspaceId },
    info,
    instructions,
    getToolsJson: () => tools,
    toolNames,
    // Allows the largest body of any operation, because the operation is known only after the message was parsed.
    ...(hasScope(actor.scopes, 'manage:write') && { bodyLimits: configurationLimits }),
    parseLongMessage: (body) => runner.readLongBody(body, actor, { limits: configurationLimits, isMessage: true }),
    getMirroredArguments: (name) => (operationsByName.has(name) ? [] : undefined),
    call: (call) => runAsTool(runner, operationsByName.get(call.name), actor, call),
  });
  return {
    loginHints,
    async authorize({ headers }, chargeQuery) {
      const actor = await authenticate(headers, credentials, chargeQuery);
      if (!canManage(actor))
        throw new Unauthenticated('forbidden', 'the API key does not have the scope manage; use another key');
      return createServerFor(actor);
    },
    pageContent: {
      name: 'Toolhost management',
      description: instructions,
      access: 'management',
      tools: toolOperations.length,
    },
  };
}

/**
 * Serializes the tool list. Agents pay for it with each conversation, so it has no output schemas and only names rare
 * fields of a configuration. Yields to the event loop between schemas, because creating all of them takes 60 ms.
 */
async function serializeTools(toolOperations: readonly Operation[]): Promise<Buffer> {
  const tools: string[] = [];
  const describedMeanings = new Set(getRareFields().map(([name, description]) => getMeaningKey(name, description)));
  for (const op of toolOperations) {
    const tool = {
      name: op.name,
      description: [op.summary, op.description].filter((text) => text !== undefined).join('. '),
      inputSchema: shortenSchema(op.inputSchema(), describedMeanings),
      annotations: getAnnotations(op),
    };
    tools.push(JSON.stringify(tool));
    await yieldToEventLoop();
  }
  return Buffer.from(`[${tools.join(',')}]`);
}

/** Refuses large arguments. Only configurations may be larger than other bodies. @throws AppError tooLarge */
function refuseLargeArguments(op: Operation, args: object, bytesIn: number): void {
  const hasShortLimits = hasShortInput(op);
  const { bytes, elements } = hasShortLimits ? eventLoopLimits : bodyLimits;
  // Each value takes at least one byte, so a message with this many bytes has no more values.
  if (bytesIn <= elements) return;
  const longBytes = countLargeValueBytes(args);
  const maxSize = { values: elements, characters: bytes - longBytes };
  if (bytesIn <= bodyLimits.bytes && (longBytes === 0 || !hasShortLimits) && !isLargerThan(args, maxSize)) return;
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
  if (!op) return toTextResult('there is no such tool', true);
  try {
    if (!('tools' in op.input.shape)) refuseLargeArguments(op, args, bytesIn);
    const ignored = findIgnoredArguments(args, Object.keys(op.input.shape), op.effect === 'read');
    const input = Object.fromEntries(Object.entries(args).filter(([name]) => !ignored.includes(name)));
    const output = await runOperation(runner, op, { actor, input, requestId });
    return appendTextBlocks(
      toJsonResult(output, op.toAgentText?.(output)),
      formatIgnoredArguments(ignored, 'not declared by the tool'),
    );
  } catch (error) {
    if (!(error instanceof AppError) || error.kind === 'unavailable' || error.kind === 'tooMany') throw error;
    // The scope of a login can be extended, so the challenge names the scopes (MCP 2026-07-28, authorization, step-up).
    if (actor.kind === 'user' && !hasScope(actor.scopes, op.scope))
      throw new Unauthenticated('forbidden', error.message);
    if (error.problems.length < 2) return toTextResult(error.message, true);
    const lines = error.problems.map((problem) => `- ${problem.path ? `${problem.path}: ` : ''}${problem.message}`);
    const summary = error.message.slice(0, error.message.indexOf(':'));
    return toTextResult([summary, ...lines].join('\n'), true);
  }
}

type JsonObject = { [key: string]: unknown };

/** Keywords that a short schema keeps. Bounds are omitted, because a refusal names them. */
const valueKeywords = ['type', 'enum', 'const', 'format', 'default'];

/**
 * Shortens the input schema of a tool, for a list that agents pay for with each conversation. The short schema has one
 * level: an object is only described, with the names of its fields. Descriptions in `describedMeanings` (see
 * `getMeaningKey`) are not repeated. The short schema accepts every input that the complete schema accepts.
 */
function shortenSchema({ properties = {}, required }: JsonObject, describedMeanings: Set<string>): JsonObject {
  const inputs = Object.entries(properties as JsonObject).map(([name, schema]): [string, JsonObject] => {
    const alternatives = getAlternatives(schema as JsonObject);
    const text = alternatives.find(({ description }) => description !== undefined)?.description as string | undefined;
    const meaning = text && getMeaningKey(name, text);
    if (meaning && describedMeanings.has(meaning)) return [name, shortenValue(alternatives, ['type'])];
    if (meaning) describedMeanings.add(meaning);
    const description = [text, formatFieldNames(alternatives)].filter(Boolean).join(' ');
    return [name, { ...shortenValue(alternatives, valueKeywords), ...(description !== '' && { description }) }];
  });
  return { type: 'object', properties: Object.fromEntries(inputs), ...(required !== undefined && { required }) };
}

/** Returns a key that is equal for inputs of several tools with the same name and description. */
export function getMeaningKey(name: string, description: string | undefined): string {
  return `${name}: ${description}`;
}

/** Returns the alternatives of a value, however they are nested; the schema itself if there are none. */
function getAlternatives(schema: JsonObject): JsonObject[] {
  const { anyOf, ...sharedKeywords } = schema;
  if (anyOf === undefined) return [schema];
  return (anyOf as JsonObject[]).flatMap((alternative) => getAlternatives({ ...sharedKeywords, ...alternative }));
}

/**
 * Shortens the schema of a value to the given keywords, without its contents. A reference, and a value of any type,
 * becomes `{}`.
 */
function shortenValue(alternatives: readonly JsonObject[], keywords: readonly string[]): JsonObject {
  const [first = {}, second, ...others] = alternatives.map((schema): JsonObject => {
    const keywordEntries = Object.entries(schema).filter(([keyword]) => keywords.includes(keyword));
    const items = schema.type === 'array' && {
      items: shortenValue(getAlternatives(schema.items as JsonObject), ['type']),
    };
    return { ...Object.fromEntries(keywordEntries), ...items };
  });
  if (second === undefined) return first;
  if (others.length === 0 && second.type === 'null' && first.enum === undefined)
    return first.type === undefined ? first : { ...first, type: [first.type, 'null'] };
  return { anyOf: [first, second, ...others] };
}

/** Lists the names of the fields of the objects in a value. */
function formatFieldNames(alternatives: readonly JsonObject[]): string | undefined {
  const object = alternatives.map(findObjectSchema).find((schema) => schema !== undefined);
  if (object === undefined) return undefined;
  const required = new Set(object.required as string[] | undefined);
  const names = Object.keys(object.properties as object).map((name) => (required.has(name) ? `${name}*` : name));
  return `Fields: ${names.join(', ')}.`;
}

/** Finds the schema of an object with fields: the value itself, or its entries. */
function findObjectSchema(schema: JsonObject): JsonObject | undefined {
  if (schema.properties) return schema;
  const entries = schema.items ?? schema.additionalProperties;
  return typeof entries === 'object' && entries !== null ? findObjectSchema(entries as JsonObject) : undefined;
}
