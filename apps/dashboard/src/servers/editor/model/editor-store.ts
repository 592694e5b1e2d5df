import { describeForeignText } from '@toolhost/errors/input-errors';
import { parseJson } from '../../../exact-json.ts';
import { toVisible } from '../../../ui/text/visible.ts';
import { asList, type Config, getTools, isJsonEqual, isObject, type PathSegment, withValue } from '../../config.ts';
import { type Finding, getFindings, type Sources } from './findings.ts';

export type EditorState = Sources & {
  /** Stored configuration, or the initial one of a new server. */
  initial: Config;
  /** Text of the JSON view while it is being edited; undefined if it shows the current configuration. */
  draft: string | undefined;
  draftProblem: string | undefined;
  /** Incremented with every configuration change. */
  revision: number;
  /** Incremented when tools may have been added, removed, or moved, but not for a change within a tool. */
  listRevision: number;
  /** Incremented when the edit restarts, which drops unfinished input in fields. */
  restartCount: number;
  /** True while the current configuration has not been validated yet. */
  isStale: boolean;
  problems: readonly Finding[];
  warnings: readonly Finding[];
  /** True if the configuration cannot be sent. */
  isBlocked: boolean;
  /** Fields that have lost focus. Their problems are shown; `isRevealed` shows those of all fields. */
  touched: ReadonlySet<string>;
  isRevealed: boolean;
};

/** Store shared by the form and the JSON view. Each component subscribes only to what it shows. */
export type EditorStore = ReturnType<typeof createEditorStore>;

/** Start of an edit. `edited` has changes from another page; `startsEmpty` starts with empty JSON text. */
type EditorInit = { initial: Config; edited?: Config | undefined; isNew?: boolean; startsEmpty?: boolean };

function createInitialState({
  initial,
  edited = initial,
  isNew = false,
  startsEmpty = false,
}: EditorInit): EditorState {
  return {
    initial,
    config: edited,
    draft: startsEmpty ? '' : undefined,
    draftProblem: undefined,
    revision: 0,
    listRevision: 0,
    restartCount: 0,
    fixedSlug: isNew ? undefined : initial.slug,
    lastCheck: undefined,
    rejection: undefined,
    mayBeTaken: isNew,
    blocks: new Map(),
    isStale: true,
    problems: [],
    warnings: [],
    isBlocked: false,
    ...concealed,
  };
}

/** State in which no problem is shown until its field is left, or until the next attempt to save. */
const concealed = { touched: new Set<string>(), isRevealed: false };

export function createEditorStore(init: EditorInit) {
  let state = createInitialState(init);
  const listeners = new Set<() => void>();
  const update = (next: Partial<EditorState>) => {
    const revision = state.revision + (next.config === undefined ? 0 : 1);
    const { problems, warnings } = state;
    state = { ...state, ...next, revision };
    const findings = getFindings(state);
    // Equal lists keep their identity, so that components do not rerender.
    if (isJsonEqual(findings.problems, problems)) findings.problems = problems;
    if (isJsonEqual(findings.warnings, warnings)) findings.warnings = warnings;
    state = { ...state, ...findings };
    for (const listener of listeners) listener();
  };
  const withConfig = (config: Config) => ({
    config,
    draft: undefined,
    draftProblem: undefined,
    listRevision: state.listRevision + 1,
  });
  return {
    getState: () => state,
    subscribe: (listener: () => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    set: (path: readonly PathSegment[], value: unknown) => {
      const next = withConfig(withValue(state.config, path, value) as Config);
      const hasListChanged = path.length === 1 && path[0] === 'tools' && !hasSameTools(state.config, next.config);
      update({
        ...next,
        ...(!hasListChanged && { listRevision: state.listRevision }),
        ...(asList(next.config.tools).length !== asList(state.config.tools).length && concealTools(state)),
      });
    },
    setText: (draft: string) => {
      const result = parseConfig(draft);
      const next =
        'config' in result ? { ...withConfig(result.config), draft } : { draft, draftProblem: result.problem };
      update({ ...next, isRevealed: true });
    },
    /** Shows the formatted configuration instead of the edited text, unless the text is empty or cannot be parsed. */
    settleText: () => {
      if (!state.draftProblem && state.draft?.trim() !== '') update({ draft: undefined });
    },
    /** Restarts the edit, by default from the stored configuration. */
    restart: (config: Config = state.initial, stored: Config = state.initial) =>
      update({ ...withConfig(config), ...concealed, initial: stored, restartCount: state.restartCount + 1 }),
    /** Records that `sentConfig` was stored. The configuration may have been edited since. */
    saved: (sentConfig: Config, stored: Config) =>
      update({
        initial: stored,
        ...concealed,
        ...(!state.draftProblem && isJsonEqual(state.config, sentConfig) && withConfig(stored)),
      }),
    applyVerdict: (verdictState: Pick<EditorState, 'lastCheck' | 'rejection' | 'mayBeTaken' | 'isStale'>) =>
      update(verdictState),
    /** Records why a field's input cannot be stored, such as unfinished JSON. Undefined clears the message. */
    setBlock: (path: string, message: string | undefined) => {
      const blocks = new Map(state.blocks);
      if (message === undefined) blocks.delete(path);
      else blocks.set(path, message);
      update({ blocks });
    },
    /** Shows the problems at this path from now on. */
    touch: (path: string) => {
      if (!state.isRevealed && !state.touched.has(path)) update({ touched: new Set([...state.touched, path]) });
    },
    reveal: () => update({ isRevealed: true }),
  };
}

/** Conceals the problems of tools whose number has changed: their paths differ, and a new tool is incomplete. */
function concealTools({ touched }: EditorState) {
  return { touched: new Set([...touched].filter((field) => !field.startsWith('tools['))), isRevealed: false };
}

/** Returns true if both have the same tool names in the same order. */
function hasSameTools(a: Config, b: Config): boolean {
  return isJsonEqual(
    getTools(a).map(({ name }) => name),
    getTools(b).map(({ name }) => name),
  );
}

function parseConfig(text: string): { config: Config } | { problem: string } {
  try {
    const value: unknown = parseJson(text.trim() === '' ? '{}' : text);
    if (isObject(value)) return { config: value };
    return { problem: 'the configuration must be a JSON object: { … }' };
  } catch (error) {
    const foreignHint = describeForeignText(text);
    if (foreignHint !== undefined) return { problem: foreignHint };
    return { problem: error instanceof Error ? toVisible(error.message) : 'not valid JSON' };
  }
}
