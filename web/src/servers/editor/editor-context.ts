import { createContext, useContext } from 'react';
import type { FieldProblem } from '../../api-types.ts';
import { type Config, type PathPart, pathText, valueAt } from '../config.ts';

export type EditorModel = {
  config: Config;
  isNew: boolean;
  isReadOnly: boolean;
  /** Whether there is anything that is not stored yet. */
  isChanged: boolean;
  problems: readonly FieldProblem[];
  warnings: readonly FieldProblem[];
  callbackUrl: string | undefined;
  set: (path: readonly PathPart[], value: unknown) => void;
  /** From now on the problems of this place are shown. */
  touch: (path: string) => void;
  isShown: (path: string) => boolean;
};

const Context = createContext<EditorModel | undefined>(undefined);

export const EditorProvider = Context.Provider;

export function useEditor(): EditorModel {
  const model = useContext(Context);
  if (!model) throw new Error('there is no editor around this field');
  return model;
}

/** The id of a field, by which the list of problems leads to it. */
export function fieldId(path: string): string {
  return `field-${path}`;
}

function isAt(problem: FieldProblem, path: string, isDeep: boolean): boolean {
  return (
    problem.path === path || (isDeep && /^[.[]/.test(problem.path.slice(path.length)) && problem.path.startsWith(path))
  );
}

/** The value at a place of the configuration, with what the service says about it. */
export function useField(path: readonly PathPart[], isDeep = false) {
  const { config, set, problems, warnings, touch, isShown, isReadOnly } = useEditor();
  const text = pathText(path);
  const say = (list: readonly FieldProblem[]) =>
    list
      .filter((problem) => isAt(problem, text, isDeep))
      .map(
        (problem) =>
          (problem.path === text ? '' : `“${problem.path.slice(text.length).replace(/^\./, '')}”: `) + problem.message,
      );
  return {
    id: fieldId(text),
    value: valueAt(config, path),
    set: (value: unknown) => set(path, value),
    touch: () => touch(text),
    errors: isShown(text) ? say(problems) : [],
    warnings: say(warnings),
    isReadOnly,
  };
}
