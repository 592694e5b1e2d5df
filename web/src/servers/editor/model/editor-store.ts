import { foreignText } from '../../../../../src/domain/mistakes.ts';
import { parseJson } from '../../../exact-json.ts';
import { visible } from '../../../ui/text/visible.ts';
import { type Config, isObject, type PathPart, sameJson, toolsOf, withValue } from '../../config.ts';
import { findingsOf, type Known, type Sources } from './findings.ts';

export type EditorState = Sources & {
  /** Stored configuration, or the initial one of a new server. */
  initial: Config;
  /** Text of the JSON view while it is being edited; undefined if it shows the current configuration. */
  draft: string | undefined;
  draftProblem: string | undefined;
  /** Incremented with every configuration change. */
  changes: number;
  /** Incremented when tools may have been added, removed, or moved, but not for a change within a tool. */
  listed: number;
  /** Incremented when the edit restarts, which drops unfinished input in fields. */
  restarts: number;
  /** True while the current configuration has not been validated yet. */
  isBehind: boolean;
  problems: readonly Known[];
  warnings: readonly Known[];
  /** True if the configuration cannot be sent. */
  isBlocked: boolean;
  /** Fields that have lost focus. Their problems are shown; `isRevealed` shows those of all fields. */
  touched: ReadonlySet<string>;
  isRevealed: boolean;
};

/** Store shared by the form and the JSON view. Each component subscribes only to what it shows. */
export type EditorStore = ReturnType<typeof createEditorStore>;

type Begin = { initial: Config; changed?: Config | undefined; isNew?: boolean; startsEmpty?: boolean };

/** Returns the initial state of an edit of a stored or new server. */
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
    // Equal lists keep their identity, so that components do not rerender.
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
    /** Restarts the edit, by default from the stored configuration. */
    restart: (config: Config = state.initial, stored: Config = state.initial) =>
      become({ ...whole(config), initial: stored, restarts: state.restarts + 1 }),
    /** Records that `sent` was stored. The configuration may have been edited since. */
    saved: (sent: Config, stored: Config) =>
      become({
        initial: stored,
        ...(!state.draftProblem && sameJson(state.config, sent) && whole(stored)),
      }),
    /** Applies the service's verdict. */
    learn: (known: Pick<EditorState, 'checked' | 'refused' | 'mayBeTaken' | 'isBehind'>) => become(known),
    /** Marks a field as holding a value that cannot be stored, such as unfinished JSON. Undefined clears the mark. */
    block: (path: string, message: string | undefined) => {
      const blocks = new Map(state.blocks);
      if (message === undefined) blocks.delete(path);
      else blocks.set(path, message);
      become({ blocks });
    },
    /** Shows the problems at this path from now on. */
    touch: (path: string) => {
      if (!state.isRevealed && !state.touched.has(path)) become({ touched: new Set([...state.touched, path]) });
    },
    reveal: () => become({ isRevealed: true }),
  };
}

/** Returns true if both have the same tool names in the same order. */
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
    return { problem: 'the configuration must be a JSON object: { … }' };
  } catch (error) {
    const foreign = foreignText(text);
    if (foreign !== undefined) return { problem: foreign };
    return { problem: error instanceof Error ? visible(error.message) : 'not valid JSON' };
  }
}
