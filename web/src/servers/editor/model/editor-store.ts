import { foreignText } from '../../../../../src/domain/mistakes.ts';
import { parseJson } from '../../../exact-json.ts';
import { visible } from '../../../ui/text/visible.ts';
import { type Config, isObject, type PathPart, sameJson, toolsOf, withValue } from '../../config.ts';
import { findingsOf, type Known, type Sources } from './findings.ts';

export type EditorState = Sources & {
  /** What is stored, or what a new server begins with. */
  initial: Config;
  /** The JSON view while it is being written; undefined when it shows the configuration as it is. */
  draft: string | undefined;
  draftProblem: string | undefined;
  /** Grows with every change of the configuration. */
  changes: number;
  /** Grows when tools may have come, gone or moved; a change inside of a tool leaves it. */
  listed: number;
  /** Grows when the edit begins again, and what was left unfinished in a field is given up. */
  restarts: number;
  /** Whether what is on screen is not checked yet. */
  isBehind: boolean;
  problems: readonly Known[];
  warnings: readonly Known[];
  /** Whether it cannot even be sent. */
  isBlocked: boolean;
  /** The fields that were left, whose problems are shown; those of all fields once they are revealed. */
  touched: ReadonlySet<string>;
  isRevealed: boolean;
};

/** The one model behind the form and the JSON view. Each part of the page reads only what it shows of it. */
export type EditorStore = ReturnType<typeof createEditorStore>;

type Begin = { initial: Config; changed?: Config | undefined; isNew?: boolean; startsEmpty?: boolean };

/** An edit that begins: of a stored server, or a new one. */
function begun({ initial, changed = initial, isNew = false, startsEmpty = false }: Begin): EditorState {
  return {
    initial,
    config: changed,
    draft: startsEmpty ? '' : undefined,
    draftProblem: undefined,
    changes: 0,
    listed: 0,
    restarts: 0,
    fixedSlug: isNew ? undefined : initial.slug,
    checked: undefined,
    refused: undefined,
    mayBeTaken: isNew,
    blocks: new Map(),
    isBehind: true,
    problems: [],
    warnings: [],
    isBlocked: false,
    touched: new Set(),
    isRevealed: !isNew,
  };
}

export function createEditorStore(begin: Begin) {
  let state = begun(begin);
  const listeners = new Set<() => void>();
  const become = (next: Partial<EditorState>) => {
    const changes = state.changes + (next.config === undefined ? 0 : 1);
    const { problems, warnings } = state;
    state = { ...state, ...next, changes };
    const found = findingsOf(state);
    // Lists that say the same stay the same objects.
    if (sameJson(found.problems, problems)) found.problems = problems;
    if (sameJson(found.warnings, warnings)) found.warnings = warnings;
    state = { ...state, ...found };
    for (const listener of listeners) listener();
  };
  const whole = (config: Config) => ({ config, draft: undefined, draftProblem: undefined, listed: state.listed + 1 });
  return {
    now: () => state,
    subscribe: (listener: () => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    set: (path: readonly PathPart[], value: unknown) => {
      const next = whole(withValue(state.config, path, value) as Config);
      const isListed = path.length === 1 && path[0] === 'tools' && !hasSameTools(state.config, next.config);
      become(isListed ? next : { ...next, listed: state.listed });
    },
    setText: (draft: string) => {
      const result = parsed(draft);
      const next = 'config' in result ? { ...whole(result.config), draft } : { draft, draftProblem: result.problem };
      become({ ...next, isRevealed: true });
    },
    settleText: () => {
      if (!state.draftProblem && state.draft?.trim() !== '') become({ draft: undefined });
    },
    /** Gives up the edit, or goes on with another one of what is stored now. */
    restart: (config: Config = state.initial, stored: Config = state.initial) =>
      become({ ...whole(config), initial: stored, restarts: state.restarts + 1 }),
    /** What was sent is stored; it may have been edited since. */
    saved: (sent: Config, stored: Config) =>
      become({
        initial: stored,
        ...(!state.draftProblem && sameJson(state.config, sent) && whole(stored)),
      }),
    /** Takes over what the service says of it. */
    learn: (known: Pick<EditorState, 'checked' | 'refused' | 'mayBeTaken' | 'isBehind'>) => become(known),
    /** Says that a field holds a value that cannot be stored, such as unfinished JSON; undefined when it can again. */
    block: (path: string, message: string | undefined) => {
      const blocks = new Map(state.blocks);
      if (message === undefined) blocks.delete(path);
      else blocks.set(path, message);
      become({ blocks });
    },
    /** From now on the problems at this path are shown. */
    touch: (path: string) => {
      if (!state.isRevealed && !state.touched.has(path)) become({ touched: new Set([...state.touched, path]) });
    },
    reveal: () => become({ isRevealed: true }),
  };
}

/** Whether the same tools are in the same places, whatever has changed inside of them. */
function hasSameTools(a: Config, b: Config): boolean {
  return sameJson(
    toolsOf(a).map(({ name }) => name),
    toolsOf(b).map(({ name }) => name),
  );
}

function parsed(text: string): { config: Config } | { problem: string } {
  try {
    const value: unknown = parseJson(text.trim() === '' ? '{}' : text);
    if (isObject(value)) return { config: value };
    return { problem: 'a configuration is an object: { … }' };
  } catch (error) {
    const foreign = foreignText(text);
    if (foreign !== undefined) return { problem: foreign };
    return { problem: error instanceof Error ? visible(error.message) : 'this is not JSON' };
  }
}
