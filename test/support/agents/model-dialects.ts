import { randomUUID } from 'node:crypto';
import type { Json } from '../toolhost/toolhost.ts';

/** A tool that an agent offered to the model. Codex groups tools in namespaces, which a call must name. */
export type OfferedTool = { name: string; localName: string; namespace?: string; fields: readonly string[] };

/** A request to a model: the tools, the latest user text that contains a script, and the results since then. */
export type Request = { tools: OfferedTool[]; prompt: string; results: string[] };

/** A tool call of the model; `args` is JSON. */
export type ToolCall = { tool: OfferedTool; args: string };
export type Decision = { calls: readonly ToolCall[] } | { text: string };

/** A model API, as far as the agents under test use it. They request streams. */
export type Dialect = {
  parseRequest(body: Json): Request;
  /** Returns the events of the response. */
  formatEvents(decision: Decision): Json[];
  /** Text after the events. */
  terminator?: string;
};

type Turn = { prompt: string } | { result: string };

/** Joins all texts of a value, at any depth. */
function extractText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(extractText).join('\n');
  if (typeof value !== 'object' || value === null) return '';
  const { text, content, output, error } = value as Json;
  return extractText(text ?? content ?? output ?? error);
}

function toList(value: unknown): Json[] {
  return Array.isArray(value) ? (value as Json[]) : [];
}

function request(tools: OfferedTool[], turns: Turn[]): Request {
  const start = turns.findLastIndex((turn) => 'prompt' in turn && turn.prompt.includes('[['));
  const promptTurn = turns[start];
  const results = turns.slice(start + 1).flatMap((turn) => ('result' in turn ? [turn.result] : []));
  return { tools, prompt: promptTurn && 'prompt' in promptTurn ? promptTurn.prompt : '', results };
}

const getFieldNames = (schema: unknown) => Object.keys(((schema ?? {}) as Json).properties ?? {});

const toOfferedTool = (name: unknown, schema?: unknown): OfferedTool => {
  return { name: String(name), localName: String(name), fields: getFieldNames(schema) };
};

/** https://platform.claude.com/docs/en/build-with-claude/streaming */
const messages: Dialect = {
  parseRequest(body) {
    const turns = toList(body.messages).flatMap(({ role, content }): Turn[] => {
      const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : toList(content);
      return blocks.flatMap((block): Turn[] => {
        if (block.type === 'tool_result') return [{ result: extractText(block.content) }];
        return role === 'user' ? [{ prompt: extractText(block) }] : [];
      });
    });
    return request(
      toList(body.tools).map(({ name, input_schema }) => toOfferedTool(name, input_schema)),
      turns,
    );
  },
  formatEvents(decision) {
    const isCall = 'calls' in decision;
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: randomUUID(), type: 'message', role: 'assistant', model: 'stub', content: [], usage };
    const blocks = isCall
      ? decision.calls.map(({ tool, args }) => ({
          content_block: { type: 'tool_use', id: randomUUID(), name: tool.localName, input: {} },
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
  parseRequest(body) {
    const flat = (tools: unknown, namespace?: string): OfferedTool[] =>
      toList(tools).flatMap((tool) => {
        if (tool.type === 'namespace') return flat(tool.tools, String(tool.name));
        const localName = String(tool.name ?? tool.type);
        const offered = toOfferedTool(localName, tool.parameters);
        return namespace === undefined ? offered : { ...offered, name: `${namespace}__${localName}`, namespace };
      });
    const turns = toList(body.input).flatMap((item): Turn[] => {
      if (item.type === 'function_call_output') return [{ result: extractText(item.output) }];
      return item.role === 'user' ? [{ prompt: extractText(item.content) }] : [];
    });
    return request(flat(body.tools), turns);
  },
  formatEvents(decision) {
    const status = 'completed';
    const output =
      'calls' in decision
        ? decision.calls.map(({ tool, args }) => ({
            type: 'function_call',
            id: randomUUID(),
            call_id: randomUUID(),
            name: tool.localName,
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
  parseRequest(body) {
    const turns = toList(body.messages).flatMap(({ role, content }): Turn[] => {
      if (role === 'tool') return [{ result: extractText(content) }];
      return role === 'user' ? [{ prompt: extractText(content) }] : [];
    });
    return request(
      toList(body.tools).map((tool) => toOfferedTool((tool.function as Json).name, (tool.function as Json).parameters)),
      turns,
    );
  },
  formatEvents(decision) {
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
      return { index, id: randomUUID(), type: 'function', function: { name: tool.localName, arguments: args } };
    });
    return [chunk({ role: 'assistant', tool_calls: calls }), chunk({}, 'tool_calls')];
  },
  terminator: 'data: [DONE]\n\n',
};

/** https://ai.google.dev/api/generate-content */
const gemini: Dialect = {
  parseRequest(body) {
    const turns = toList(body.contents).flatMap(({ role, parts }) =>
      toList(parts).flatMap((part): Turn[] => {
        const { response } = (part.functionResponse ?? {}) as Json;
        if (response) return [{ result: extractText(response) }];
        return role === 'user' ? [{ prompt: extractText(part) }] : [];
      }),
    );
    const declared = toList(body.tools).flatMap((tool) => toList(tool.functionDeclarations));
    return request(
      declared.map(({ name, parameters, parametersJsonSchema }) =>
        toOfferedTool(name, parametersJsonSchema ?? parameters),
      ),
      turns,
    );
  },
  formatEvents(decision) {
    const parts =
      'calls' in decision
        ? decision.calls.map(({ tool, args }) => ({
            functionCall: { name: tool.localName, args: JSON.parse(args) as Json },
          }))
        : [{ text: decision.text }];
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    const content = { role: 'model', parts };
    return [{ candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata, modelVersion: 'stub' }];
  },
};

/** Returns the API that a path belongs to, or undefined for other paths. */
export function getDialect(path: string): Dialect | undefined {
  if (path.endsWith('/messages')) return messages;
  if (path.endsWith('/responses')) return responses;
  if (path.endsWith('/chat/completions')) return chat;
  return path.endsWith(':streamGenerateContent') ? gemini : undefined;
}
