import { useCallback, useMemo, useState } from 'react';
import { foreignText } from '../../../../../src/domain/mistakes/foreign-document.ts';
import type { FieldProblem } from '../../../answers.ts';
import { parseJson } from '../../../exact-json.ts';
import { visible, visibleJson } from '../../../ui/text/visible.ts';
import { type Config, isObject, type PathPart, withValue } from '../../config.ts';

type State = {
  config: Config;
  /** The JSON view while it is being written; undefined when it shows the configuration as it is. */
  draft: string | undefined;
  draftProblem: string | undefined;
};

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

/** The one model behind the form and the JSON view. */
export function useEditorModel(initial: Config, changed: Config | undefined, startsEmpty: boolean) {
  const [state, setState] = useState<State>({
    config: changed ?? initial,
    draft: startsEmpty ? '' : undefined,
    draftProblem: undefined,
  });
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const set = useCallback((path: readonly PathPart[], value: unknown) => {
    setState(({ config }) => ({
      config: withValue(config, path, value) as Config,
      draft: undefined,
      draftProblem: undefined,
    }));
  }, []);
  const setText = useCallback((draft: string) => {
    const result = parsed(draft);
    setState(({ config }) =>
      'config' in result
        ? { config: result.config, draft, draftProblem: undefined }
        : { config, draft, draftProblem: result.problem },
    );
  }, []);
  const touch = useCallback((path: string) => setTouched((before) => new Set([...before, path])), []);
  const original = useMemo(() => JSON.stringify(initial), [initial]);
  return {
    config: state.config,
    text: state.draft ?? visibleJson(state.config),
    draftProblem: state.draftProblem,
    isChanged: state.draftProblem !== undefined || JSON.stringify(state.config) !== original,
    touched,
    set,
    setText,
    settleText: () =>
      setState((now) => (now.draftProblem || now.draft?.trim() === '' ? now : { ...now, draft: undefined })),
    reset: () => setState({ config: initial, draft: undefined, draftProblem: undefined }),
    touch,
  };
}

/** The warnings, without those about missing secrets that are stored by now. */
export function withoutStored(warnings: readonly FieldProblem[], stored: readonly string[]): FieldProblem[] {
  return warnings.filter(({ message }) => {
    const name = /^\{\{(\w+)\}\} has no value/.exec(message)?.[1];
    return name === undefined || !stored.includes(name);
  });
}
