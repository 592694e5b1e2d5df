import type { Input } from '../../../src/operations/index.ts';
import type { ModelAnswer, ModelPart, Tried } from '../answers.ts';
import { textIn } from '../servers/try/result/file-in.ts';

export type Asked = Input<'askModel'>;
export type Messages = Asked['messages'];
/** Whom the model is given: the server or a view, in a mode or a version that may differ from that of agents. */
export type Target = Pick<Asked, 'view' | 'mode' | 'version'>;
export type CallPart = Extract<ModelPart, { type: 'call' }>;

/** A call that the model wants, and what it got. */
export type Call = {
  part: CallPart;
  /** The result of the tool; undefined when it was not called. */
  tried?: Tried | undefined;
  /** What the model reads instead of a result. */
  instead?: string | undefined;
};

/** One answer of the model. */
export type Step = {
  text: string;
  thought: string;
  /** The tool whose arguments are being written. */
  writing?: string | undefined;
  answer?: ModelAnswer | undefined;
  calls: readonly Call[];
};

/** A question of the person, and what came of it. */
export type Exchange = { question: string; steps: readonly Step[]; error?: unknown; isStopped?: boolean };

/** A conversation with one target. */
export type Run = { id: number; target: Target; model: string; exchanges: readonly Exchange[] };

const neverAnswered = 'The person stopped the conversation before this call.';

/** The result of a call, as the model reads it. */
function textOfCall({ tried, instead }: Call): string {
  if (!tried) return instead ?? neverAnswered;
  return tried.content
    .map((block) => textIn(block) || `(${block.type}: not shown to the model here)`)
    .concat(tried.left_out ?? [])
    .join('\n');
}

/** The conversation as the model is told it. An answer that was stopped is left out. */
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

/** What a conversation took, for comparison with another. */
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

/** `the view reads, with search, version 3` */
export function targetText({ view, mode, version }: Target): string {
  return [
    view === undefined ? 'The server' : `The view ${view}`,
    ...(mode === 'search' ? ['with search'] : mode === 'list' ? ['all tools listed'] : []),
    ...(version === undefined ? [] : [`version ${version}`]),
  ].join(', ');
}

export function isSameTarget(a: Target, b: Target): boolean {
  return a.view === b.view && a.mode === b.mode && a.version === b.version;
}
