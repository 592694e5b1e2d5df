import { maxModelSteps } from '@toolhost/server/model';
import { useEffect, useRef, useState } from 'react';
import { api, askModel } from '../api.ts';
import type { JsonObject } from '../api-types.ts';
import { parseJson } from '../exact-json.ts';
import { isObject } from '../servers/config.ts';
import { getErrorMessage } from '../ui/states/problem-alert.tsx';
import {
  type Call,
  type Exchange,
  type ModelRequest,
  type Run,
  type Step,
  type Target,
  type ToolCallPart,
  toMessages,
} from './conversation.ts';

/** Call that waits for the user's decision. */
export type PendingCall = { toolCall: ToolCallPart; decide: (isAllowed: boolean) => void };

type Settings = { slug: string; model: ModelRequest['model']; modelName: string; token: string };

const declinedText = 'The user did not allow this call.';

/** Manages conversations with a model, one of which is shown. The service calls the model, one reply at a time. */
export function useConversation(settings: Settings) {
  const [runs, setRuns] = useState<readonly Run[]>([]);
  const [shownId, setShownId] = useState(0);
  const [pendingCall, setPendingCall] = useState<PendingCall>();
  const [running, setRunning] = useState<AbortController>();
  const latestSettings = useRef(settings);
  latestSettings.current = settings;
  useEffect(() => () => running?.abort(), [running]);

  /** Asks the questions one after the other, continuing the run's exchanges. */
  async function askQuestions(run: Run, questions: readonly string[]): Promise<void> {
    const abortController = new AbortController();
    setRunning(abortController);
    let { exchanges } = run;
    for (const question of questions) {
      if (abortController.signal.aborted) break;
      const previousExchanges = exchanges;
      const publish = (exchange: Exchange) => {
        exchanges = [...previousExchanges, exchange];
        const changedRun = { ...run, exchanges };
        setRuns((current) =>
          current.some(({ id }) => id === run.id)
            ? current.map((candidate) => (candidate.id === run.id ? changedRun : candidate))
            : [...current, changedRun],
        );
      };
      await answerQuestion({
        ...latestSettings.current,
        target: run.target,
        previousExchanges,
        question,
        publish,
        signal: abortController.signal,
        ask: setPendingCall,
      });
      if (exchanges.at(-1)?.error !== undefined) break;
    }
    setPendingCall(undefined);
    setRunning(undefined);
  }
  const startRun = (target: Target, questions: readonly string[]) => {
    const run = { id: runs.length + 1, target, model: settings.modelName, exchanges: [] };
    setShownId(run.id);
    void askQuestions(run, questions);
  };
  const shown = runs.find(({ id }) => id === shownId);
  return {
    runs,
    shown,
    pendingCall,
    isRunning: running !== undefined,
    show: setShownId,
    stop: () => running?.abort(),
    ask: (target: Target, question: string) =>
      shown ? void askQuestions(shown, [question]) : startRun(target, [question]),
    replay: (run: Run, target: Target) =>
      startRun(
        target,
        run.exchanges.map(({ question }) => question),
      ),
    startNew: () => setShownId(0),
  };
}

type AnswerContext = Settings & {
  target: Target;
  previousExchanges: readonly Exchange[];
  question: string;
  publish: (exchange: Exchange) => void;
  signal: AbortSignal;
  ask: (pendingCall: PendingCall | undefined) => void;
};

/** Answers one question: calls the model until a reply requests no tool calls. */
async function answerQuestion(context: AnswerContext): Promise<void> {
  const { slug, model, target, previousExchanges, question, signal } = context;
  let exchange: Exchange = { question, steps: [] };
  const change = (next: Partial<Exchange>) => {
    exchange = { ...exchange, ...next };
    context.publish(exchange);
  };
  const getStep = () => exchange.steps.at(-1) as Step;
  const changeStep = (next: Partial<Step>) => change({ steps: exchange.steps.with(-1, { ...getStep(), ...next }) });
  try {
    for (let count = 0; count < maxModelSteps; count++) {
      const messages = toMessages([...previousExchanges, exchange]);
      change({ steps: [...exchange.steps, { text: '', thought: '', calls: [] }] });
      const reply = await askModel(
        { slug, model, messages, ...target },
        (progress) => {
          if ('text' in progress) changeStep({ text: getStep().text + progress.text });
          else if ('thought' in progress) changeStep({ thought: getStep().thought + progress.thought });
          else changeStep({ pendingTool: progress.tool });
        },
        signal,
      );
      const calls = reply.parts.filter((toolCall) => toolCall.type === 'call').map((toolCall): Call => ({ toolCall }));
      changeStep({ reply, calls, pendingTool: undefined });
      if (calls.length === 0) return;
      for (const [index, call] of calls.entries()) {
        signal.throwIfAborted();
        const completedCall = await makeCall(context, call);
        changeStep({ calls: getStep().calls.with(index, completedCall) });
      }
    }
    change({
      error: new Error(
        `The model did not finish within ${maxModelSteps} replies. Ask for less at a time, or continue with another question.`,
      ),
    });
  } catch (error) {
    change(signal.aborted ? { isStopped: true } : { error });
  }
}

/** Makes a call as the user, after confirmation if the tool is not read-only. */
async function makeCall({ slug, target, token, signal, ask }: AnswerContext, call: Call): Promise<Call> {
  const { toolCall } = call;
  const args = parseArguments(toolCall);
  if (!args) return { toolCall, fallbackText: 'The arguments are not a JSON object.' };
  if (!toolCall.reads) {
    const isAllowed = await new Promise<boolean>((decide) => {
      signal.addEventListener('abort', () => decide(false), { once: true });
      ask({ toolCall, decide });
    });
    ask(undefined);
    signal.throwIfAborted();
    if (!isAllowed) return { toolCall, fallbackText: declinedText };
  }
  try {
    const input = { arguments: args, token: token || undefined, ...target };
    return { toolCall, result: await api('callTool', { slug, tool: toolCall.tool, ...input }) };
  } catch (error) {
    return { toolCall, fallbackText: getErrorMessage(error) };
  }
}

/** Parses the model's arguments without rounding numbers. Returns undefined unless they are an object. */
export function parseArguments({ arguments: text }: ToolCallPart): JsonObject | undefined {
  try {
    const value = parseJson(text === '' ? '{}' : text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
