import { foreignText } from '../../../../../src/domain/mistakes.ts';
import { parseJson } from '../../../exact-json.ts';
import { visible } from '../../../ui/text/visible.ts';
import { type Config, isObject, type PathPart, withValue } from '../../config.ts';

export type EditorState = {
  config: Config;
  /** The JSON view while it is being written; undefined when it shows the configuration as it is. */
  draft: string | undefined;
  draftProblem: string | undefined;
  /** Grows when tools may have come, gone or moved; a change inside of a tool leaves it. */
  listed: number;
};

/** The one model behind the form and the JSON view. Each part of the page reads only what it shows of it. */
export type EditorStore = ReturnType<typeof createEditorStore>;

export function createEditorStore(begin: Config, startsEmpty: boolean) {
  let state: EditorState = {
    config: begin,
    draft: startsEmpty ? '' : undefined,
    draftProblem: undefined,
    listed: 0,
  };
  const listeners = new Set<() => void>();
  const become = (next: Partial<EditorState>) => {
    state = { ...state, ...next };
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
      become(path[0] === 'tools' && path.length === 1 ? next : { ...next, listed: state.listed });
    },
    setText: (draft: string) => {
      const result = parsed(draft);
      become('config' in result ? { ...whole(result.config), draft } : { draft, draftProblem: result.problem });
    },
    settleText: () => {
      if (!state.draftProblem && state.draft?.trim() !== '') become({ draft: undefined });
    },
    reset: (config: Config) => become(whole(config)),
  };
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
