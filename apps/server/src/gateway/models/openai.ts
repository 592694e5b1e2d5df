import { isJsonObjectText } from '@toolhost/json/object-json';
import type { JsonObject } from '@toolhost/mcp-protocol/json-rpc';
import type { ModelMessage, ModelPart, ModelQuestion, ModelReply } from '../../model.ts';
import { type ModelApi, toCount, toModelText, toObject, toObjects } from './model-api.ts';
import type { SplicedJson } from './model-messages.ts';
import type { ModelResponse } from './model-response.ts';

/** The Chat Completions API of OpenAI, and of all compatible hosts. */
export const openai: ModelApi = { createRequest, createReader };

type TextPart = Extract<ModelPart, { text: string }>;
type CallPart = Extract<ModelPart, { type: 'call' }>;

function createRequest({ model, instructions, tools, messages }: ModelQuestion, json: SplicedJson) {
  const body = {
    model: model.name,
    stream: true,
    stream_options: { include_usage: true },
    messages: [
      ...(instructions === undefined ? [] : [{ role: 'system', content: instructions }]),
      ...messages.flatMap((message) => toMessages(message, json)),
    ],
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, inputSchema }) => ({
        type: 'function',
        function: { name, description, parameters: inputSchema },
      })),
    }),
  };
  return { path: '/chat/completions', headers: model.key ? ['Authorization', `Bearer ${model.key}`] : [], body };
}

function toMessages(message: ModelMessage, json: SplicedJson): object[] {
  if (message.role === 'user') return [{ role: 'user', content: message.text }];
  if (message.role === 'tools')
    return message.results.map(({ id, text }) => ({ role: 'tool', tool_call_id: id, content: text }));
  const { parts } = message;
  const joinText = (type: TextPart['type']) => parts.map((part) => (part.type === type ? part.text : '')).join('');
  const calls = parts.filter((part) => part.type === 'call').map((part) => toCall(part, json));
  const thought = joinText('thought');
  const content = joinText('text');
  const hasNoText = content === '' && calls.length > 0;
  const optionalFields = {
    ...(thought !== '' && { reasoning_content: thought }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return [{ role: 'assistant', content: hasNoText ? null : content, ...optionalFields }];
}

function toCall(part: CallPart, json: SplicedJson): object {
  const functionCall = { name: part.tool, arguments: isJsonObjectText(part.arguments) ? part.arguments : '{}' };
  return { id: part.id, type: 'function', function: functionCall, ...json.insertMembers(part.meta) };
}

/**
 * Creates the reader of a response. A response has one text and one thought, however often the host alternates between
 * them.
 */
function createReader(response: ModelResponse): (event: JsonObject) => void {
  const texts: { text?: TextPart; thought?: TextPart } = {};
  const calls = new Map<unknown, CallPart>();
  let lastCall: CallPart | undefined;
  const append = (type: TextPart['type'], text: string) => {
    if (text === '') return;
    texts[type] ??= response.startText(type);
    response.appendText(texts[type], text);
  };
  /** Finds or starts the call of a delta. Hosts number calls, repeat their id, or send each call completely. */
  const callFor = ({ index, id, function: functionCall }: JsonObject): CallPart => {
    const existing = index === undefined ? lastCall : calls.get(index);
    if (existing && (!id || id === existing.id)) return existing;
    const call = response.startCall(toModelText(id), toModelText(toObject(functionCall).name));
    if (index !== undefined) calls.set(index, call);
    return call;
  };
  return ({ choices, usage }) => {
    const { prompt_tokens, completion_tokens } = toObject(usage);
    response.usage.input = toCount(prompt_tokens) ?? response.usage.input;
    response.usage.output = toCount(completion_tokens) ?? response.usage.output;
    const [choice] = toObjects(choices);
    if (!choice) return;
    const delta = toObject(choice.delta);
    append('thought', toModelText(delta.reasoning_content) || toModelText(delta.reasoning));
    append('text', toModelText(delta.content));
    for (const callDelta of toObjects(delta.tool_calls)) {
      lastCall = callFor(callDelta);
      const functionCall = toObject(callDelta.function);
      response.nameCall(lastCall, toModelText(functionCall.name));
      response.appendArguments(lastCall, toModelText(functionCall.arguments));
      if (callDelta.extra_content !== undefined) response.setMeta(lastCall, { extra_content: callDelta.extra_content });
    }
    if (typeof choice.finish_reason === 'string')
      response.finishReason = finishReasons.get(choice.finish_reason) ?? 'other';
  };
}

const finishReasons = new Map<string, ModelReply['finishReason']>([
  ['stop', 'stop'],
  ['length', 'length'],
  ['content_filter', 'content-filter'],
  ['tool_calls', 'tool-calls'],
  ['function_call', 'tool-calls'],
]);
