import type { JsonObject } from '@toolhost/mcp-protocol/json-rpc';
import type { ModelMessage, ModelPart, ModelQuestion, ModelReply } from '../../model.ts';
import { type ModelApi, toCount, toModelText, toObject, toObjects } from './model-api.ts';
import type { SplicedJson } from './model-messages.ts';
import type { ModelResponse } from './model-response.ts';

/** `streamGenerateContent` of the Gemini API, v1beta. */
export const gemini: ModelApi = { createRequest, createReader };

function createRequest({ model, instructions, tools, messages }: ModelQuestion, json: SplicedJson) {
  const declarations = tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    parametersJsonSchema: inputSchema,
  }));
  const body = {
    ...(instructions !== undefined && { systemInstruction: { parts: [{ text: instructions }] } }),
    contents: messages.map((message) => toContent(message, json)).filter(({ parts }) => parts.length > 0),
    ...(declarations.length > 0 && { tools: [{ functionDeclarations: declarations }] }),
  };
  const name = model.name.includes('/') ? model.name : `models/${model.name}`;
  const path = `/${name.split('/').map(encodeURIComponent).join('/')}:streamGenerateContent?alt=sse`;
  return { path, headers: model.key ? ['x-goog-api-key', model.key] : [], body };
}

function toContent(message: ModelMessage, json: SplicedJson): { role: string; parts: object[] } {
  if (message.role === 'user') return { role: 'user', parts: [{ text: message.text }] };
  if (message.role === 'model') return { role: 'model', parts: message.parts.map((part) => toPart(part, json)) };
  const parts = message.results.map(({ id, tool, text }) => ({
    functionResponse: { id, name: tool, response: { name: tool, content: text } },
  }));
  return { role: 'user', parts };
}

function toPart(part: ModelPart, json: SplicedJson): object {
  if (part.type === 'call')
    return {
      functionCall: { id: part.id, name: part.tool, args: json.insertObject(part.arguments) },
      ...json.insertMembers(part.meta),
    };
  return { text: part.text, ...(part.type === 'thought' && { thought: true }), ...json.insertMembers(part.meta) };
}

function createReader(response: ModelResponse): (event: JsonObject) => void {
  return ({ candidates, promptFeedback, usageMetadata }) => {
    const { promptTokenCount, candidatesTokenCount, thoughtsTokenCount } = toObject(usageMetadata);
    response.usage.input = toCount(promptTokenCount) ?? response.usage.input;
    const output = toCount(candidatesTokenCount);
    if (output !== undefined) response.usage.output = output + (toCount(thoughtsTokenCount) ?? 0);
    if (toObject(promptFeedback).blockReason !== undefined) response.finishReason = 'content-filter';
    const [candidate] = toObjects(candidates);
    if (!candidate) return;
    for (const part of toObjects(toObject(candidate.content).parts)) readPart(response, part);
    if (typeof candidate.finishReason !== 'string') return;
    response.finishReason = finishReasons.get(candidate.finishReason) ?? 'other';
    // A model that calls tools reports the same finish reason as one that has finished its text.
    if (response.finishReason === 'stop' && response.hasCalls) response.finishReason = 'tool-calls';
  };
}

function readPart(response: ModelResponse, { text, thought, functionCall, thoughtSignature }: JsonObject): void {
  let part: ModelPart | undefined;
  if (functionCall !== undefined) {
    const { id, name, args } = toObject(functionCall);
    part = response.startCall(toModelText(id), toModelText(name));
    response.appendArguments(part, JSON.stringify(toObject(args)));
  } else if (typeof text === 'string') {
    part = response.getOrStartText(thought === true ? 'thought' : 'text');
    response.appendText(part, text);
  }
  if (part && typeof thoughtSignature === 'string') response.setMeta(part, { thoughtSignature });
}

const finishReasons = new Map<string, ModelReply['finishReason']>([
  ['STOP', 'stop'],
  ['MAX_TOKENS', 'length'],
  ['SAFETY', 'content-filter'],
  ['RECITATION', 'content-filter'],
  ['BLOCKLIST', 'content-filter'],
  ['PROHIBITED_CONTENT', 'content-filter'],
  ['SPII', 'content-filter'],
  ['IMAGE_SAFETY', 'content-filter'],
  ['MALFORMED_FUNCTION_CALL', 'error'],
]);
