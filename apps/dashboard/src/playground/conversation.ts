import type { Input } from '@toolhost/server/operations';
import type { ModelReply, ModelReplyPart, ToolCallResult } from '../api-types.ts';
import { getText } from '../servers/try/result/block-file.ts';

export type ModelRequest = Input<'askModel'>;
export type Messages = ModelRequest['messages'];
/** Tools for the model: those of the server or a view, in a delivery mode and a version that agents may not use. */
export type Target = Pick<ModelRequest, 'view' | 'mode' | 'version'>;
export type ToolCallPart = Extract<ModelReplyPart, { type: 'call' }>;

/** Call that the model requested, and its result. */
export type Call = {
  toolCall: ToolCallPart;
  /** Tool result; undefined if the tool was not called. */
  result?: ToolCallResult | undefined;
  /** Text that the model receives instead of a result. */
  fallbackText?: string | undefined;
};

export type Step = {
  text: string;
  thought: string;
  /** Tool whose arguments are being streamed. */
  pendingTool?: string | undefined;
  reply?: ModelReply | undefined;
  calls: readonly Call[];
};

/** Question of the user and the model's steps to answer it. */
export type Exchange = { question: string; steps: readonly Step[]; error?: unknown; isStopped?: boolean };

/** Conversation with one target. */
export type Run = { id: number; target: Target; model: string; exchanges: readonly Exchange[] };

const notCalledText = 'The user stopped the conversation before this call.';

function formatCallResult({ result, fallbackText }: Call): string {
  if (!result) return fallbackText ?? notCalledText;
  return result.content
    .map((block) => getText(block) || `(${block.type}: not shown to the model here)`)
    .concat(result.left_out ?? [])
    .join('\n');
}

/** Converts the conversation to model messages. A reply that was stopped is omitted. */
export function toMessages(exchanges: readonly Exchange[]): Messages {
  return exchanges.flatMap(
    ({ question, steps }): Messages => [
      { role: 'user', text: question },
      ...steps.flatMap(({ reply, calls }): Messages => {
        if (!reply || reply.parts.length === 0) return [];
        const results = calls.map((call) => ({
          id: call.toolCall.id,
          tool: call.toolCall.tool,
          text: formatCallResult(call),
          is_error: call.result?.is_error ?? true,
        }));
        const modelMessage: Messages[number] = { role: 'model', parts: reply.parts };
        return results.length === 0 ? [modelMessage] : [modelMessage, { role: 'tools', results }];
      }),
    ],
  );
}

/** Sums up calls, tokens, and time of a conversation, for comparison with another. */
export function getTotals({ exchanges }: Run) {
  const steps = exchanges.flatMap((exchange) => exchange.steps);
  const calls = steps.flatMap((step) => step.calls);
  const sum = (values: readonly (number | undefined)[]) =>
    values.reduce<number>((total, value) => total + (value ?? 0), 0);
  return {
    replies: steps.filter(({ reply }) => reply).length,
    calls: calls.filter(({ result }) => result).length,
    failed: calls.filter(({ result }) => result?.is_error).length,
    input: sum(steps.map(({ reply }) => reply?.input_tokens)),
    output: sum(steps.map(({ reply }) => reply?.output_tokens)),
    ms: sum([...steps.map(({ reply }) => reply?.ms), ...calls.map(({ result }) => result?.timing?.total_ms)]),
  };
}

const modeTexts = { search: 'with search', list: 'all tools listed' };

/** Formats a target: `View reads, with search, version 3`. */
export function formatTarget({ view, mode, version }: Target): string {
  return [
    view === undefined ? 'Server' : `View ${view}`,
    ...(mode === undefined ? [] : [modeTexts[mode]]),
    ...(version === undefined ? [] : [`version ${version}`]),
  ].join(', ');
}

export function isSameTarget(a: Target, b: Target): boolean {
  return a.view === b.view && a.mode === b.mode && a.version === b.version;
}
