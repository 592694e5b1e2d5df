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

/** Messages of a conversation. */
export const mostMessages = 200;
const mostParts = 100;
const longestText = 500_000;

const text = z.string().max(longestText);
const name = z.string().min(1).max(200);
const meta = text
  .refine(isObjectJson, 'allowed: the text that an answer had here')
  .optional()
  .describe("Text of the model's host, which goes back to it as it is.");

const part = z.discriminatedUnion('type', [
  z.strictObject({ type: z.enum(['text', 'thought']), text, meta }),
  z.strictObject({
    type: z.literal('call'),
    id: name,
    tool: name,
    arguments: text.describe('JSON, as the model wrote it.'),
    reads: z.boolean().optional().describe('Whether the call only reads; ask before any other.'),
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
  summary: 'Ask a model with the tools of a hosted server, once',
  description:
    'Gives what the model says and the calls that it wants, and makes none of them: make each with callTool, and ask again with the results. With "Accept: application/jsonl" its words come while it writes them, a JSON object a line: text, thought, tool; the last has the result, or the problem.',
  scope: 'call',
  effect: 'call',
  asksModel: true,
  isTool: false,
  input: z.strictObject({
    slug: slugInput,
    view: viewInput.optional().describe('A view of the server, whose tools the model gets.'),
    mode: z.enum(toolModes).optional().describe('As if the server, or the view, had this tool_mode.'),
    version: z.int().min(1).optional().describe('An older version of the server; needs the scope manage:write.'),
    model: z
      .union([modelShape, z.strictObject({ saved: name.describe('Name of a stored model, of listModels.') })])
      .describe('The name of a stored model, or a model; describing one needs the scope manage:write.'),
    messages: z
      .array(message)
      .min(1)
      .max(mostMessages)
      .describe(`The conversation; a question of a person takes at most ${mostModelSteps} answers of the model.`),
  }),
  output: z.object({
    parts: z.array(part).max(mostParts).describe('The message of the role model, for the next question.'),
    finish: z.enum(modelFinishes),
    input_tokens: tokens.describe("As the model's host counts them."),
    output_tokens: tokens,
    tools: z.int().describe('Tools that the model was given.'),
    tools_tokens: z.int().describe('About what their descriptions cost the model.'),
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
  const found = `found ${steps} answers to the last question; allowed: ${mostModelSteps}; ask something of your own next`;
  throw invalid([{ path: 'messages', message: found }]);
}

/** The arguments of a call; none where the model wrote no object. */
async function argumentsOf(call: Extract<ModelPart, { type: 'call' }>): Promise<Arguments> {
  const value = await parseJsonInTurns(call.arguments).catch(() => undefined);
  return isObject(value) ? (value as Arguments) : {};
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
