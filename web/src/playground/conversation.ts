import type { Input } from '../../../src/operations/index.ts';
import type { ModelAnswer, ModelPart, Tried } from '../answers.ts';
import { textIn } from '../servers/try/result/file-in.ts';

export type Asked = Input<'askModel'>;
export type Messages = Asked['messages'];
/** Tools to give the model: the server or a view, in a mode or version that may differ from the one agents use. */
export type Target = Pick<Asked, 'view' | 'mode' | 'version'>;
export type CallPart = Extract<ModelPart, { type: 'call' }>;

/** Call that the model requested, and its result. */
export type Call = {
  part: CallPart;
  /** Tool result; undefined if the tool was not called. */
  tried?: Tried | undefined;
  /** Text that the model receives instead of a result. */
  instead?: string | undefined;
};

/** One reply of the model. */
export type Step = {
  text: string;
  thought: string;
  /** Tool whose arguments are being streamed. */
  writing?: string | undefined;
  answer?: ModelAnswer | undefined;
  calls: readonly Call[];
};

/** Question of the user and the model's steps to answer it. */
export type Exchange = { question: string; steps: readonly Step[]; error?: unknown; isStopped?: boolean };

/** Conversation with one target. */
export type Run = { id: number; target: Target; model: string; exchanges: readonly Exchange[] };

const neverAnswered = 'The user stopped the conversation before this call.';

/** Formats the result of a call for the model. */
function textOfCall({ tried, instead }: Call): string {
  if (!tried) return instead ?? neverAnswered;
  return tried.content
    .map((block) => textIn(block) || `(${block.type}: not shown to the model here)`)
    .concat(tried.left_out ?? [])
    .join('\n');
}

/** Converts the conversation to model messages. A reply that was stopped is omitted. */
export function messagesOf(exchanges: readonly Exchange[]): Messages {
  return exchanges.flatMap(
    ({ question, steps }): Messages => [
      { role: 'user', text: question },
      ...steps.flatMap(({ answer, calls }): Messages => {
        if (!answer || answer.parts.length === 0) return [];
        const results = calls.map((call) => ({
          id: call.part.id,
          tool: call.part.tool,
          text: textOfCall(call),
          is_error: call.tried?.is_error ?? true,
        }));
        const said: Messages[number] = { role: 'model', parts: answer.parts };
        return results.length === 0 ? [said] : [said, { role: 'tools', results }];
      }),
    ],
  );
}

/** Sums up calls, tokens, and time of a conversation, for comparison with another. */
export function totalsOf({ exchanges }: Run) {
  const steps = exchanges.flatMap((exchange) => exchange.steps);
  const calls = steps.flatMap((step) => step.calls);
  const sum = (values: readonly (number | undefined)[]) => values.reduce<number>((all, one) => all + (one ?? 0), 0);
  return {
    answers: steps.filter(({ answer }) => answer).length,
    calls: calls.filter(({ tried }) => tried).length,
    failed: calls.filter(({ tried }) => tried?.is_error).length,
    input: sum(steps.map(({ answer }) => answer?.input_tokens)),
    output: sum(steps.map(({ answer }) => answer?.output_tokens)),
    ms: sum([...steps.map(({ answer }) => answer?.ms), ...calls.map(({ tried }) => tried?.timing?.total_ms)]),
  };
}

/** Formats a target: `View reads, with search, version 3`. */
export function targetText({ view, mode, version }: Target): string {
  return [
    view === undefined ? 'Server' : `View ${view}`,
    ...(mode === 'search' ? ['with search'] : mode === 'list' ? ['all tools listed'] : []),
    ...(version === undefined ? [] : [`version ${version}`]),
  ].join(', ');
}

export function isSameTarget(a: Target, b: Target): boolean {
  return a.view === b.view && a.mode === b.mode && a.version === b.version;
}
