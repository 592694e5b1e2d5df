import { invalidInputError } from '@toolhost/errors/errors';
import { parseJsonInChunks } from '@toolhost/json/json';
import { isJsonObjectText } from '@toolhost/json/object-json';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import { estimateTokenCount } from '@toolhost/tool-config/tokens';
import { toolModes } from '@toolhost/tool-config/tool';
import { z } from 'zod';
import { type ModelMessage, type ModelPart, maxModelSteps, modelFinishReasons } from '../../model.ts';
import { getServer } from '../find-server.ts';
import { operation, requireServing } from '../operation.ts';
import { refreshActor } from '../run-operation.ts';
import { getOlderVersion } from '../servers/versions.ts';
import { slugInput, viewInput } from '../shapes.ts';
import { modelShape, resolveModel } from './models.ts';

/** Maximum number of messages in a conversation. */
export const maxMessages = 200;
const maxParts = 100;
const maxTextLength = 500_000;

const textInput = z.string().max(maxTextLength);
const nameInput = z.string().min(1).max(200);
const metaInput = textInput
  .refine(isJsonObjectText, 'allowed: the text that a response had here')
  .optional()
  .describe('Opaque text from the model host, to be sent back unchanged.');

const partShape = z.discriminatedUnion('type', [
  z.strictObject({ type: z.enum(['text', 'thought']), text: textInput, meta: metaInput }),
  z.strictObject({
    type: z.literal('call'),
    id: nameInput,
    tool: nameInput,
    arguments: textInput.describe('Arguments as JSON, as the model wrote them.'),
    reads: z.boolean().optional().describe('True if the call only reads. Ask the person before making any other call.'),
    meta: metaInput,
  }),
]);

const resultShape = z.strictObject({
  id: nameInput,
  tool: nameInput,
  text: textInput,
  is_error: z.boolean().optional(),
});

const messageShape = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('user'), text: textInput }),
  z.strictObject({ role: z.literal('model'), parts: z.array(partShape).max(maxParts) }),
  z.strictObject({ role: z.literal('tools'), results: z.array(resultShape).max(maxParts) }),
]);

const tokenCount = z.int().optional();

export const askModel = operation({
  name: 'askModel',
  summary: 'Send one request to a model with the tools of a hosted server',
  description:
    'Returns the output of the model and the tool calls that it requests, without making them. Make each call with callTool, and then send another request with the results. With "Accept: application/jsonl", the output is streamed with one JSON object per line: text, thought, or tool. The last line contains the result or the problem.',
  scope: 'call',
  effect: 'call',
  callsModel: true,
  isTool: false,
  input: z.strictObject({
    slug: slugInput,
    view: viewInput.optional().describe('View of the server whose tools the model gets.'),
    mode: z.enum(toolModes).optional().describe('Tool mode to use instead of the tool_mode of the server or view.'),
    version: z.int().min(1).optional().describe('Older version of the server to use; needs the scope manage:write.'),
    model: z
      .union([modelShape, z.strictObject({ saved: nameInput.describe('Name of a stored model, from listModels.') })])
      .describe('Name of a stored model, or the description of a model, which needs the scope manage:write.'),
    messages: z
      .array(messageShape)
      .min(1)
      .max(maxMessages)
      .describe(
        `Messages of the conversation. After a message from the user, the model may respond at most ${maxModelSteps} times.`,
      ),
  }),
  output: z.object({
    parts: z.array(partShape).max(maxParts).describe('Parts of the model message, to include in the next request.'),
    finish: z.enum(modelFinishReasons),
    input_tokens: tokenCount.describe('Input tokens, as counted by the model host.'),
    output_tokens: tokenCount,
    tools: z.int().describe('Number of tools that the model was offered.'),
    tools_tokens: z.int().describe('Estimated tokens of the tool definitions.'),
    ms: z.int(),
  }),
  async run(context, { slug, view, mode, version, model, messages }) {
    const server = await getServer(context, slug);
    refuseTooManySteps(messages);
    const olderVersion = await getOlderVersion(context, server, version);
    const { actor, stream, requestId } = context;
    const chosenModel = await resolveModel(context, model);
    const serving = requireServing(context);
    const target = { slug, view, mode, olderVersion };
    const { instructions, tools, isReadOnly } = await serving.getOfferedTools(target);
    const startedAt = performance.now();
    const response = await serving.askModel({
      variant: target,
      question: {
        workspaceId: actor.workspaceId,
        model: chosenModel.model,
        instructions,
        tools,
        messages,
        onProgress: stream?.onProgress ?? (() => undefined),
        signal: stream?.signal,
      },
      subject: chosenModel.subject,
      actorId: actor.id,
      limitedKeys: actor.callLimits,
      requestId,
      checkActor: async () => void (await refreshActor(context.db, actor, context.now())),
    });
    const { input, output } = response.usage;
    const parts: (ModelPart & { reads?: boolean })[] = [];
    for (const responsePart of response.parts)
      parts.push(
        responsePart.type === 'call'
          ? { ...responsePart, reads: isReadOnly(responsePart.tool, await parseArguments(responsePart)) }
          : responsePart,
      );
    return {
      parts,
      finish: response.finishReason,
      ...(input !== undefined && { input_tokens: input }),
      ...(output !== undefined && { output_tokens: output }),
      tools: tools.length,
      tools_tokens: estimateTokenCount(JSON.stringify(tools).length),
      ms: Math.round(performance.now() - startedAt),
    };
  },
});

/** @throws AppError invalid */
function refuseTooManySteps(messages: readonly ModelMessage[]): void {
  const lastQuestion = messages.findLastIndex(({ role }) => role === 'user');
  const steps = messages.slice(lastQuestion).filter(({ role }) => role === 'model').length;
  if (steps < maxModelSteps) return;
  const message = `found ${steps} model messages after the last user message; allowed: ${maxModelSteps}; send a user message next`;
  throw invalidInputError([{ path: 'messages', message }]);
}

/** Parses the arguments of a call; returns none if the model wrote no object. */
async function parseArguments(call: Extract<ModelPart, { type: 'call' }>): Promise<Arguments> {
  const value = await parseJsonInChunks(call.arguments).catch(() => undefined);
  return isObject(value) ? (value as Arguments) : {};
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
