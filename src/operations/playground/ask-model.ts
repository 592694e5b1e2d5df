import { z } from 'zod';
import { toolModes } from '../../domain/config/tool.ts';
import { parseJsonInTurns } from '../../domain/json/json.ts';
import { isObjectJson } from '../../domain/json/object-json.ts';
import { type ModelMessage, type ModelPart, modelFinishes, mostModelSteps } from '../../domain/model.ts';
import { tokensOfLength } from '../../domain/pieces/tokens.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import { invalid } from '../../errors.ts';
import { operation, servingOf } from '../operation.ts';
import { actorNow } from '../run-operation.ts';
import { olderVersion } from '../servers/versions.ts';
import { getServer, slugInput, viewInput } from '../shapes.ts';
import { modelOf, modelShape } from './models.ts';

/** Maximum number of messages in a conversation. */
export const mostMessages = 200;
const mostParts = 100;
const longestText = 500_000;

const text = z.string().max(longestText);
const name = z.string().min(1).max(200);
const meta = text
  .refine(isObjectJson, 'allowed: the text that a response had here')
  .optional()
  .describe('Opaque text from the model host, to be sent back unchanged.');

const part = z.discriminatedUnion('type', [
  z.strictObject({ type: z.enum(['text', 'thought']), text, meta }),
  z.strictObject({
    type: z.literal('call'),
    id: name,
    tool: name,
    arguments: text.describe('Arguments as JSON, as the model wrote them.'),
    reads: z.boolean().optional().describe('True if the call only reads. Ask the person before making any other call.'),
    meta,
  }),
]);

const result = z.strictObject({ id: name, tool: name, text, is_error: z.boolean().optional() });

const message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('user'), text }),
  z.strictObject({ role: z.literal('model'), parts: z.array(part).max(mostParts) }),
  z.strictObject({ role: z.literal('tools'), results: z.array(result).max(mostParts) }),
]);

const tokens = z.int().optional();

export const askModel = operation({
  name: 'askModel',
  summary: 'Send one request to a model with the tools of a hosted server',
  description:
    'Returns the output of the model and the tool calls that it requests, without making them. Make each call with callTool, and then send another request with the results. With "Accept: application/jsonl", the output is streamed with one JSON object per line: text, thought, or tool. The last line contains the result or the problem.',
  scope: 'call',
  effect: 'call',
  asksModel: true,
  isTool: false,
  input: z.strictObject({
    slug: slugInput,
    view: viewInput.optional().describe('View of the server whose tools the model gets.'),
    mode: z.enum(toolModes).optional().describe('Tool mode to use instead of the tool_mode of the server or view.'),
    version: z.int().min(1).optional().describe('Older version of the server to use; needs the scope manage:write.'),
    model: z
      .union([modelShape, z.strictObject({ saved: name.describe('Name of a stored model, from listModels.') })])
      .describe('Name of a stored model, or the description of a model, which needs the scope manage:write.'),
    messages: z
      .array(message)
      .min(1)
      .max(mostMessages)
      .describe(
        `Messages of the conversation. After a message from the user, the model may respond at most ${mostModelSteps} times.`,
      ),
  }),
  output: z.object({
    parts: z.array(part).max(mostParts).describe('Parts of the model message, to include in the next request.'),
    finish: z.enum(modelFinishes),
    input_tokens: tokens.describe('Input tokens, as counted by the model host.'),
    output_tokens: tokens,
    tools: z.int().describe('Number of tools that the model was offered.'),
    tools_tokens: z.int().describe('Estimated tokens of the tool definitions.'),
    ms: z.int(),
  }),
  async run(context, { slug, view, mode, version, model, messages }) {
    const server = await getServer(context, slug);
    checkSteps(messages);
    const older = await olderVersion(context, server, version);
    const { actor, stream, requestId } = context;
    const chosen = await modelOf(context, model);
    const serving = servingOf(context);
    const served = { slug, view, mode, older };
    const { instructions, tools, isReading } = await serving.offeredTools(served);
    const startedAt = performance.now();
    const answer = await serving.askModel({
      served,
      question: {
        workspaceId: actor.workspaceId,
        model: chosen.model,
        instructions,
        tools,
        messages,
        onProgress: stream?.tell ?? (() => undefined),
        signal: stream?.signal,
      },
      subject: chosen.subject,
      actorId: actor.id,
      limits: actor.callLimits,
      requestId,
      checkActor: async () => void (await actorNow(context.db, actor, context.now())),
    });
    const { input, output } = answer.usage;
    const parts: (ModelPart & { reads?: boolean })[] = [];
    for (const one of answer.parts)
      parts.push(one.type === 'call' ? { ...one, reads: isReading(one.tool, await argumentsOf(one)) } : one);
    return {
      parts,
      finish: answer.finish,
      ...(input !== undefined && { input_tokens: input }),
      ...(output !== undefined && { output_tokens: output }),
      tools: tools.length,
      tools_tokens: tokensOfLength(JSON.stringify(tools).length),
      ms: Math.round(performance.now() - startedAt),
    };
  },
});

/** @throws AppError invalid */
function checkSteps(messages: readonly ModelMessage[]): void {
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  const steps = messages.slice(asked).filter(({ role }) => role === 'model').length;
  if (steps < mostModelSteps) return;
  const found = `found ${steps} model messages after the last user message; allowed: ${mostModelSteps}; send a user message next`;
  throw invalid([{ path: 'messages', message: found }]);
}

/** Parses the arguments of a call; returns none if the model wrote no object. */
async function argumentsOf(call: Extract<ModelPart, { type: 'call' }>): Promise<Arguments> {
  const value = await parseJsonInTurns(call.arguments).catch(() => undefined);
  return isObject(value) ? (value as Arguments) : {};
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
