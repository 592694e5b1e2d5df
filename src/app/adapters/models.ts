import { APICallError, type LanguageModelV4, type LanguageModelV4Message } from '@ai-sdk/provider';
import { readUrl } from '../../domain/http/read-url.ts';
import type { Model, ModelAnswer, ModelMessage, ModelPart, ModelQuestion } from '../../domain/model.ts';
import { AppError, OutboundError, shortText } from '../../errors.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import { goneWith } from './fetch-document.ts';

/** For one answer of a model, from the request to its last word. */
export const modelMs = 180_000;
export const modelAnswerBytes = 4 * 1024 * 1024;
const longestMessage = 500;
const mostParts = 100;

/** Asks a model once, and reads its answer while it comes. @throws AppError invalid, unavailable */
export async function answerOfModel(http: HttpClient, question: ModelQuestion): Promise<ModelAnswer> {
  const { model, instructions, tools, messages, signal } = question;
  try {
    const asked = await clientOf(model, fetchThrough(http, question.workspaceId));
    const { stream } = await asked.doStream({
      prompt: [
        ...(instructions === undefined ? [] : [{ role: 'system', content: instructions } as const]),
        ...messages.map(messageOf),
      ],
      tools: tools.map(({ name, description, inputSchema }) => ({
        type: 'function',
        name,
        description,
        inputSchema,
      })),
      ...(signal && { abortSignal: signal }),
    });
    return await readAnswer(stream, question);
  } catch (error) {
    throw refusalOf(error, model);
  }
}

/** Loaded when it is first asked, because each brings as much code as all of a call. */
async function clientOf(
  { kind, url, name, key = '' }: Model,
  fetch: typeof globalThis.fetch,
): Promise<LanguageModelV4> {
  const baseURL = url.replace(/\/+$/, '');
  const config = { provider: kind, baseURL, fetch, generateId: () => crypto.randomUUID() };
  if (kind === 'anthropic') {
    const { AnthropicMessagesLanguageModel } = await import('@ai-sdk/anthropic/internal');
    const headers = { 'anthropic-version': '2023-06-01', 'x-api-key': key };
    return new AnthropicMessagesLanguageModel(name, { ...config, headers });
  }
  if (kind === 'gemini') {
    const { GoogleLanguageModel } = await import('@ai-sdk/google/internal');
    return new GoogleLanguageModel(name, { ...config, headers: { 'x-goog-api-key': key } });
  }
  const { OpenAICompatibleChatLanguageModel } = await import('@ai-sdk/openai-compatible');
  return new OpenAICompatibleChatLanguageModel(name, {
    provider: kind,
    fetch,
    headers: key === '' ? {} : { Authorization: `Bearer ${key}` },
    url: ({ path }) => baseURL + path,
    includeUsage: true,
  });
}

const metaOf = (metadata: object | undefined) => metadata && { meta: JSON.stringify(metadata) };
const optionsOf = (meta: string | undefined) =>
  meta === undefined ? undefined : { providerOptions: JSON.parse(meta) as Record<string, never> };

function messageOf(message: ModelMessage): LanguageModelV4Message {
  if (message.role === 'user') return { role: 'user', content: [{ type: 'text', text: message.text }] };
  if (message.role === 'model') return { role: 'assistant', content: message.parts.map(partOf) };
  return {
    role: 'tool',
    content: message.results.map(({ id, tool, text, is_error: isError }) => ({
      type: 'tool-result',
      toolCallId: id,
      toolName: tool,
      output: { type: isError ? 'error-text' : 'text', value: text },
    })),
  };
}

function partOf(part: ModelPart) {
  const options = optionsOf(part.meta);
  if (part.type === 'call') {
    const { id: toolCallId, tool: toolName } = part;
    return { type: 'tool-call', toolCallId, toolName, input: argumentsIn(part), ...options } as const;
  }
  return { type: part.type === 'text' ? 'text' : 'reasoning', text: part.text, ...options } as const;
}

/** What a model wrote for arguments may be no JSON; it reads that in the result of the call. */
function argumentsIn(part: { arguments: string }): unknown {
  try {
    return JSON.parse(part.arguments);
  } catch {
    return {};
  }
}

type Stream = Awaited<ReturnType<LanguageModelV4['doStream']>>['stream'];

async function readAnswer(stream: Stream, { onProgress }: ModelQuestion): Promise<ModelAnswer> {
  const parts: ModelPart[] = [];
  const open = new Map<string, Extract<ModelPart, { text: string }>>();
  const answer: ModelAnswer = { parts, finish: 'other', usage: { input: undefined, output: undefined } };
  for await (const event of stream) {
    if (event.type === 'text-start' || event.type === 'reasoning-start') {
      const part = { type: event.type === 'text-start' ? 'text' : 'thought', text: '' } as const;
      open.set(event.id, Object.assign(part, metaOf(event.providerMetadata)));
      parts.push(open.get(event.id) as ModelPart);
    } else if (event.type === 'text-delta' || event.type === 'reasoning-delta') {
      const part = open.get(event.id);
      if (part) Object.assign(part, { text: part.text + event.delta }, metaOf(event.providerMetadata));
      onProgress(event.type === 'text-delta' ? { text: event.delta } : { thought: event.delta });
    } else if (event.type === 'text-end' || event.type === 'reasoning-end') {
      Object.assign(open.get(event.id) ?? {}, metaOf(event.providerMetadata));
    } else if (event.type === 'tool-input-start') onProgress({ tool: event.toolName });
    else if (event.type === 'tool-call') {
      const { toolCallId: id, toolName: tool, input, providerMetadata } = event;
      parts.push({ type: 'call', id, tool, arguments: input, ...metaOf(providerMetadata) });
    } else if (event.type === 'finish') {
      answer.finish = event.finishReason.unified;
      answer.usage = { input: event.usage.inputTokens.total, output: event.usage.outputTokens.total };
    } else if (event.type === 'error') throw event.error;
  }
  // A text without words is refused when it comes back.
  const isTelling = (part: ModelPart) => part.type !== 'text' || part.text !== '';
  const told = parts.filter(isTelling).slice(0, mostParts);
  if (told.length === 0 && answer.finish === 'other')
    throw new AppError(
      'unavailable',
      'the host of the model answered with nothing that its API has; check the address',
    );
  return { ...answer, parts: told };
}

/** `fetch` through the guarded client. */
function fetchThrough(http: HttpClient, workspaceId: string): typeof fetch {
  return (input, init = {}) => {
    const url = readUrl(String(input));
    if (!url) throw new AppError('invalid', 'the address of the model is no URL');
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    let body: ReadableStreamDefaultController<Uint8Array> | undefined;
    const left = new AbortController();
    const exchange = {
      workspaceId,
      origin: url.origin,
      credentialHash: undefined,
      path: url.pathname + url.search,
      method: init.method === 'POST' ? 'POST' : 'GET',
      headers: [...new Headers(init.headers)].flat(),
      body: typeof init.body === 'string' ? init.body : undefined,
      timeoutMs: modelMs,
      limitBytes: modelAnswerBytes,
      onGone: goneWith(init.signal ? AbortSignal.any([init.signal, left.signal]) : left.signal),
      onHead(head: Head) {
        const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
          body = controller;
        };
        // Who has read enough leaves, and the rest of the answer is of no use.
        const cancel = () => {
          body = undefined;
          left.abort();
        };
        resolve(responseOf(head, new ReadableStream({ start, cancel })));
        return (piece: Buffer) => body?.enqueue(piece);
      },
    } as const;
    http.send(exchange).then(
      (answer) => (body ? body.close() : resolve(responseOf(answer, new Uint8Array(answer.body)))),
      (error: unknown) => (body ? body.error(error) : reject(error)),
    );
    return promise;
  };
}

type Head = Parameters<NonNullable<Parameters<HttpClient['send']>[0]['onHead']>>[0];

function responseOf({ status, headers }: Head, body: ConstructorParameters<typeof Response>[0]): Response {
  const isBare = [204, 205, 304].includes(status);
  const type = headers['content-type'];
  // A response can have no other status, and to throw here would leave the exchange without an end.
  const known = status >= 200 && status <= 599 ? status : 502;
  return new Response(isBare ? null : body, {
    status: known,
    headers: type === undefined ? {} : { 'content-type': type },
  });
}

/** Why a model gave no answer. What its host says is shown without the key, and nothing else of the error is kept. */
function refusalOf(error: unknown, { key }: Pick<Model, 'key'>): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof OutboundError) return new AppError('unavailable', `the model was not asked: ${error.message}`);
  if (APICallError.isInstance(error) && error.cause instanceof OutboundError) return refusalOf(error.cause, { key });
  const said = error instanceof Error ? error.message : saidIn(error);
  const shown = shortText(key === undefined || key === '' ? said : said.replaceAll(key, '[key]'), longestMessage);
  const status = APICallError.isInstance(error) ? error.statusCode : undefined;
  if (status !== undefined && status >= 400 && status < 500 && status !== 429)
    return new AppError('invalid', `the host of the model answered ${status}: ${shown}`);
  return new AppError('unavailable', `the model gave no answer: ${status === undefined ? '' : `${status} `}${shown}`);
}

/** The message in what a host sent instead of the rest of an answer. */
function saidIn(error: unknown): string {
  const { message } = (error ?? {}) as { message?: unknown };
  return typeof message === 'string' ? message : typeof error === 'string' ? error : 'its host ended the answer';
}
