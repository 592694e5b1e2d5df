import { randomUUID } from 'node:crypto';
import type { Json } from '../toolhost/toolhost.ts';

/** A tool that an agent offered to the model. Codex groups tools in namespaces, which a call must name. */
export type OfferedTool = { name: string; own: string; namespace?: string; fields: readonly string[] };

/** A request to a model: the tools, the latest user text that contains a script, and the results since then. */
export type Request = { tools: OfferedTool[]; prompt: string; results: string[] };

/** A tool call of the model; `args` is JSON. */
export type WantedCall = { tool: OfferedTool; args: string };
export type Decision = { calls: readonly WantedCall[] } | { text: string };

/** A model API, as far as the agents under test use it. They request streams. */
export type Dialect = {
  read(body: Json): Request;
  /** Returns the events of the response. */
  write(decision: Decision): Json[];
  /** Text after the events. */
  end?: string;
};

type Turn = { prompt: string } | { result: string };

/** Joins all texts of a value, at any depth. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(textOf).join('\n');
  if (typeof value !== 'object' || value === null) return '';
  const { text, content, output, error } = value as Json;
  return textOf(text ?? content ?? output ?? error);
}

function list(value: unknown): Json[] {
  return Array.isArray(value) ? (value as Json[]) : [];
}

function request(tools: OfferedTool[], turns: Turn[]): Request {
  const start = turns.findLastIndex((turn) => 'prompt' in turn && turn.prompt.includes('[['));
  const begun = turns[start];
  const results = turns.slice(start + 1).flatMap((turn) => ('result' in turn ? [turn.result] : []));
  return { tools, prompt: begun && 'prompt' in begun ? begun.prompt : '', results };
}

const fieldsOf = (schema: unknown) => Object.keys(((schema ?? {}) as Json).properties ?? {});

const named = (name: unknown, schema?: unknown): OfferedTool => {
  return { name: String(name), own: String(name), fields: fieldsOf(schema) };
};

/** https://platform.claude.com/docs/en/build-with-claude/streaming */
const messages: Dialect = {
  read(body) {
    const turns = list(body.messages).flatMap(({ role, content }): Turn[] => {
      const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : list(content);
      return blocks.flatMap((block): Turn[] => {
        if (block.type === 'tool_result') return [{ result: textOf(block.content) }];
        return role === 'user' ? [{ prompt: textOf(block) }] : [];
      });
    });
    return request(
      list(body.tools).map(({ name, input_schema }) => named(name, input_schema)),
      turns,
    );
  },
  write(decision) {
    const isCall = 'calls' in decision;
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: randomUUID(), type: 'message', role: 'assistant', model: 'stub', content: [], usage };
    const blocks = isCall
      ? decision.calls.map(({ tool, args }) => ({
          content_block: { type: 'tool_use', id: randomUUID(), name: tool.own, input: {} },
          delta: { type: 'input_json_delta', partial_json: args },
        }))
      : [{ content_block: { type: 'text', text: '' }, delta: { type: 'text_delta', text: decision.text } }];
    const end = { stop_reason: isCall ? 'tool_use' : 'end_turn', stop_sequence: null };
    return [
      { type: 'message_start', message: { ...message, stop_reason: null, stop_sequence: null } },
      ...blocks.flatMap(({ content_block, delta }, index) => [
        { type: 'content_block_start', index, content_block },
        { type: 'content_block_delta', index, delta },
        { type: 'content_block_stop', index },
      ]),
      { type: 'message_delta', delta: end, usage },
      { type: 'message_stop' },
    ];
  },
};

/** https://developers.openai.com/api/docs/guides/streaming-responses */
const responses: Dialect = {
  read(body) {
    const flat = (tools: unknown, namespace?: string): OfferedTool[] =>
      list(tools).flatMap((tool) => {
        if (tool.type === 'namespace') return flat(tool.tools, String(tool.name));
        const own = String(tool.name ?? tool.type);
        const offered = named(own, tool.parameters);
        return namespace === undefined ? offered : { ...offered, name: `${namespace}__${own}`, namespace };
      });
    const turns = list(body.input).flatMap((item): Turn[] => {
      if (item.type === 'function_call_output') return [{ result: textOf(item.output) }];
      return item.role === 'user' ? [{ prompt: textOf(item.content) }] : [];
    });
    return request(flat(body.tools), turns);
  },
  write(decision) {
    const status = 'completed';
    const output =
      'calls' in decision
        ? decision.calls.map(({ tool, args }) => ({
            type: 'function_call',
            id: randomUUID(),
            call_id: randomUUID(),
            name: tool.own,
            namespace: tool.namespace,
            arguments: args,
            status,
          }))
        : [
            {
              type: 'message',
              id: randomUUID(),
              role: 'assistant',
              status,
              content: [{ type: 'output_text', text: decision.text, annotations: [] }],
            },
          ];
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    const response = {
      id: randomUUID(),
      object: 'response',
      created_at: 1,
      status,
      model: 'stub',
      output,
      usage,
    };
    return [
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
      ...output.map((item, output_index) => ({ type: 'response.output_item.done', output_index, item })),
      { type: 'response.completed', response },
    ];
  },
};

/** https://developers.openai.com/api/reference/chat-completions */
const chat: Dialect = {
  read(body) {
    const turns = list(body.messages).flatMap(({ role, content }): Turn[] => {
      if (role === 'tool') return [{ result: textOf(content) }];
      return role === 'user' ? [{ prompt: textOf(content) }] : [];
    });
    return request(
      list(body.tools).map((tool) => named((tool.function as Json).name, (tool.function as Json).parameters)),
      turns,
    );
  },
  write(decision) {
    const id = randomUUID();
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const chunk = (delta: Json, finish_reason: string | null = null) => ({
      id,
      object: 'chat.completion.chunk',
      created: 1,
      model: 'stub',
      choices: [{ index: 0, delta, finish_reason }],
      ...(finish_reason !== null && { usage }),
    });
    if ('text' in decision) return [chunk({ role: 'assistant', content: decision.text }), chunk({}, 'stop')];
    const calls = decision.calls.map(({ tool, args }, index) => {
      return { index, id: randomUUID(), type: 'function', function: { name: tool.own, arguments: args } };
    });
    return [chunk({ role: 'assistant', tool_calls: calls }), chunk({}, 'tool_calls')];
  },
  end: 'data: [DONE]\n\n',
};

/** https://ai.google.dev/api/generate-content */
const gemini: Dialect = {
  read(body) {
    const turns = list(body.contents).flatMap(({ role, parts }) =>
      list(parts).flatMap((part): Turn[] => {
        const { response } = (part.functionResponse ?? {}) as Json;
        if (response) return [{ result: textOf(response) }];
        return role === 'user' ? [{ prompt: textOf(part) }] : [];
      }),
    );
    const declared = list(body.tools).flatMap((tool) => list(tool.functionDeclarations));
    return request(
      declared.map(({ name, parameters, parametersJsonSchema }) => named(name, parametersJsonSchema ?? parameters)),
      turns,
    );
  },
  write(decision) {
    const parts =
      'calls' in decision
        ? decision.calls.map(({ tool, args }) => ({ functionCall: { name: tool.own, args: JSON.parse(args) as Json } }))
        : [{ text: decision.text }];
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    const content = { role: 'model', parts };
    return [{ candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata, modelVersion: 'stub' }];
  },
};

/** Returns the API that a path belongs to, or undefined for other paths. */
export function dialectOf(path: string): Dialect | undefined {
  if (path.endsWith('/messages')) return messages;
  if (path.endsWith('/responses')) return responses;
  if (path.endsWith('/chat/completions')) return chat;
  return path.endsWith(':streamGenerateContent') ? gemini : undefined;
}
