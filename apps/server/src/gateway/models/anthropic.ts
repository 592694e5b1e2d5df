import type { JsonObject } from '@toolhost/mcp-protocol/json-rpc';
import type { ModelMessage, ModelPart, ModelQuestion, ModelReply } from '../../model.ts';
import { type ModelApi, toCount, toModelText, toObject } from './model-api.ts';
import type { SplicedJson } from './model-messages.ts';
import type { ModelResponse } from './model-response.ts';

/** The Messages API of Anthropic, version 2023-06-01. */
export const anthropic: ModelApi = { createRequest, createReader };

/** Maximum number of output tokens, which the API requires. Models before Claude 4 allow less. */
const maxTokens = { standard: 16_000, claude3: 4096 };

function createRequest({ model, instructions, tools, messages }: ModelQuestion, json: SplicedJson) {
  const body = {
    model: model.name,
    max_tokens: /\bclaude-3\b/.test(model.name) ? maxTokens.claude3 : maxTokens.standard,
    stream: true,
    ...(instructions !== undefined && { system: instructions }),
    messages: messages.map((message) => toMessage(message, json)).filter(({ content }) => content.length > 0),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, inputSchema }) => ({ name, description, input_schema: inputSchema })),
    }),
  };
  const headers = ['anthropic-version', '2023-06-01', ...(model.key ? ['x-api-key', model.key] : [])];
  return { path: '/messages', headers, body };
}

function toMessage(message: ModelMessage, json: SplicedJson): { role: string; content: object[] } {
  if (message.role === 'user') return { role: 'user', content: [{ type: 'text', text: message.text }] };
  if (message.role === 'model')
    return { role: 'assistant', content: message.parts.flatMap((part) => toBlock(part, json)) };
  const content = message.results.map(({ id, text, is_error }) => ({
    type: 'tool_result',
    tool_use_id: id,
    content: text,
    ...(is_error && { is_error }),
  }));
  return { role: 'user', content };
}

function toBlock(part: ModelPart, json: SplicedJson): object[] {
  if (part.type === 'call')
    return [{ type: 'tool_use', id: part.id, name: part.tool, input: json.insertObject(part.arguments) }];
  if (part.type === 'text') return part.text === '' ? [] : [{ type: 'text', text: part.text }];
  // The API rejects a thought without its signature, which other hosts produce.
  if (part.meta === undefined) return [];
  if (part.text === '' && part.meta.startsWith('{"data":'))
    return [{ type: 'redacted_thinking', ...json.insertMembers(part.meta) }];
  return [{ type: 'thinking', thinking: part.text, ...json.insertMembers(part.meta) }];
}

function createReader(response: ModelResponse): (event: JsonObject) => void {
  let part: ModelPart | undefined;
  return (event) => {
    switch (event.type) {
      case 'message_start':
        readUsage(response, toObject(event.message));
        break;
      case 'content_block_start':
        part = startPart(response, toObject(event.content_block));
        break;
      case 'content_block_delta':
        if (part) readDelta(response, part, toObject(event.delta));
        break;
      case 'content_block_stop':
        part = undefined;
        break;
      case 'message_delta':
        readUsage(response, event);
        response.finishReason = finishReasons.get(toModelText(toObject(event.delta).stop_reason)) ?? 'other';
    }
  };
}

function startPart(response: ModelResponse, block: JsonObject): ModelPart | undefined {
  switch (block.type) {
    case 'tool_use':
      return response.startCall(toModelText(block.id), toModelText(block.name));
    case 'text':
    case 'thinking': {
      const part = response.startText(block.type === 'text' ? 'text' : 'thought');
      response.appendText(part, toModelText(block.type === 'text' ? block.text : block.thinking));
      return part;
    }
    case 'redacted_thinking': {
      const part = response.startText('thought');
      response.setMeta(part, { data: toModelText(block.data) });
      return part;
    }
    default:
      return undefined;
  }
}

function readDelta(response: ModelResponse, part: ModelPart, delta: JsonObject): void {
  if (part.type === 'call') response.appendArguments(part, toModelText(delta.partial_json));
  else if (delta.type === 'signature_delta') response.setMeta(part, { signature: toModelText(delta.signature) });
  else response.appendText(part, toModelText(part.type === 'text' ? delta.text : delta.thinking));
}

/** Reads token counts. Input tokens include cached ones. If an event reports a count again, the later value applies. */
function readUsage({ usage }: ModelResponse, event: JsonObject): void {
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } = toObject(event.usage);
  const input = toCount(input_tokens);
  if (input !== undefined)
    usage.input = input + (toCount(cache_creation_input_tokens) ?? 0) + (toCount(cache_read_input_tokens) ?? 0);
  usage.output = toCount(output_tokens) ?? usage.output;
}

const finishReasons = new Map<string, ModelReply['finishReason']>([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['pause_turn', 'stop'],
  ['tool_use', 'tool-calls'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'content-filter'],
]);
