import { useEffect, useRef, useState } from 'react';
import { mostModelSteps } from '../../../src/domain/model.ts';
import type { JsonObject } from '../answers.ts';
import { api, askModel } from '../api.ts';
import { parseJson } from '../exact-json.ts';
import { isObject } from '../servers/config.ts';
import { messageOf } from '../ui/states/problem-alert.tsx';
import {
  type Asked,
  type Call,
  type CallPart,
  type Exchange,
  messagesOf,
  type Run,
  type Step,
  type Target,
} from './conversation.ts';

/** Call that waits for the user's decision. */
export type Doubt = { part: CallPart; decide: (isAllowed: boolean) => void };

type Settings = { slug: string; model: Asked['model']; modelName: string; token: string };

const declined = 'The user did not allow this call.';

/** Manages conversations with a model, one of which is shown. The service calls the model, one reply at a time. */
export function useConversation(settings: Settings) {
  const [runs, setRuns] = useState<readonly Run[]>([]);
  const [shownId, setShownId] = useState(0);
  const [doubt, setDoubt] = useState<Doubt>();
  const [running, setRunning] = useState<AbortController>();
  const latest = useRef(settings);
  latest.current = settings;
  useEffect(() => () => running?.abort(), [running]);

  /** Asks the questions one after the other, continuing the run's exchanges. */
  async function talk(run: Run, questions: readonly string[]): Promise<void> {
    const stop = new AbortController();
    setRunning(stop);
    let { exchanges } = run;
    for (const question of questions) {
      if (stop.signal.aborted) break;
      const before = exchanges;
      const publish = (exchange: Exchange) => {
        exchanges = [...before, exchange];
        const changed = { ...run, exchanges };
        setRuns((all) =>
          all.some(({ id }) => id === run.id)
            ? all.map((one) => (one.id === run.id ? changed : one))
            : [...all, changed],
        );
      };
      await answer({
        ...latest.current,
        target: run.target,
        before,
        question,
        publish,
        signal: stop.signal,
        ask: setDoubt,
      });
      if (exchanges.at(-1)?.error !== undefined) break;
    }
    setDoubt(undefined);
    setRunning(undefined);
  }
  const begin = (target: Target, questions: readonly string[]) => {
    const run = { id: runs.length + 1, target, model: settings.modelName, exchanges: [] };
    setShownId(run.id);
    void talk(run, questions);
  };
  const shown = runs.find(({ id }) => id === shownId);
  return {
    runs,
    shown,
    doubt,
    isRunning: running !== undefined,
    show: setShownId,
    stop: () => running?.abort(),
    ask: (target: Target, question: string) => (shown ? void talk(shown, [question]) : begin(target, [question])),
    replay: (run: Run, target: Target) =>
      begin(
        target,
        run.exchanges.map(({ question }) => question),
      ),
    startAnew: () => setShownId(0),
  };
}

type Answering = Settings & {
  target: Target;
  before: readonly Exchange[];
  question: string;
  publish: (exchange: Exchange) => void;
  signal: AbortSignal;
  ask: (doubt: Doubt | undefined) => void;
};

/** Answers one question: calls the model until it requests no more tool calls. */
async function answer(of: Answering): Promise<void> {
  const { slug, model, target, before, question, signal } = of;
  let exchange: Exchange = { question, steps: [] };
  const change = (next: Partial<Exchange>) => {
    exchange = { ...exchange, ...next };
    of.publish(exchange);
  };
  const changeStep = (next: Partial<Step>) =>
    change({ steps: exchange.steps.with(-1, { ...(exchange.steps.at(-1) as Step), ...next }) });
  const step = () => exchange.steps.at(-1) as Step;
  try {
    for (let count = 0; count < mostModelSteps; count++) {
      const messages = messagesOf([...before, exchange]);
      change({ steps: [...exchange.steps, { text: '', thought: '', calls: [] }] });
      const told = await askModel(
        { slug, model, messages, ...target },
        (progress) => {
          if ('text' in progress) changeStep({ text: step().text + progress.text });
          else if ('thought' in progress) changeStep({ thought: step().thought + progress.thought });
          else changeStep({ writing: progress.tool });
        },
        signal,
      );
      const calls = told.parts.filter((part) => part.type === 'call').map((part): Call => ({ part }));
      changeStep({ answer: told, calls, writing: undefined });
      if (calls.length === 0) return;
      for (const [index, call] of calls.entries()) {
        signal.throwIfAborted();
        const made = await makeCall(of, call);
        changeStep({ calls: step().calls.with(index, made) });
      }
    }
    change({
      error: new Error(
        `The model did not finish within ${mostModelSteps} replies. Ask for less at a time, or continue with another question.`,
      ),
    });
  } catch (error) {
    change(signal.aborted ? { isStopped: true } : { error });
  }
}

/** Makes a call as the user, after confirmation if the tool is not read-only. */
async function makeCall({ slug, target, token, signal, ask }: Answering, call: Call): Promise<Call> {
  const { part } = call;
  const args = argumentsIn(part);
  if (!args) return { part, instead: 'The arguments are not a JSON object.' };
  if (!part.reads) {
    const isAllowed = await new Promise<boolean>((decide) => {
      signal.addEventListener('abort', () => decide(false), { once: true });
      ask({ part, decide });
    });
    ask(undefined);
    signal.throwIfAborted();
    if (!isAllowed) return { part, instead: declined };
  }
  try {
    const given = { arguments: args, token: token || undefined, ...target };
    return { part, tried: await api('callTool', { slug, tool: part.tool, ...given }) };
  } catch (error) {
    return { part, instead: messageOf(error) };
  }
}

/** Parses the model's arguments without rounding numbers. Returns undefined unless they are an object. */
export function argumentsIn({ arguments: text }: CallPart): JsonObject | undefined {
  try {
    const value = parseJson(text === '' ? '{}' : text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
