import { createContext, useContext, useEffect } from 'react';
import type { FieldProblem } from '../../answers.ts';
import { usePress } from '../../ui/press.ts';
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
  /** Says what a field holds that cannot be stored, such as JSON that is not finished; undefined when that is over. */
  block: (path: string, message: string | undefined) => void;
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
  const { beforeClick } = usePress();
  const text = pathText(path);
  const sayAt = (place: string, list: readonly FieldProblem[]) =>
    list.filter((problem) => isAt(problem, place, isDeep)).map((problem) => words(problem, place));
  const say = (list: readonly FieldProblem[]) => sayAt(text, list);
  const rowOf = (name: string) => `${text}.${name}`;
  return {
    id: fieldId(text),
    value: valueAt(config, path),
    set: (value: unknown) => set(path, value),
    touch: () => beforeClick(() => touch(text)),
    errors: isShown(text) ? say(problems) : [],
    warnings: say(warnings),
    /** What is wrong with one of the named rows of this field. */
    errorsOfRow: (name: string) => (isShown(text) && name !== '' ? sayAt(rowOf(name), problems) : []),
    /** What is wrong with it that belongs to none of these rows. */
    errorsBeside: (names: readonly string[]) =>
      isShown(text)
        ? say(problems.filter((problem) => !names.some((name) => name !== '' && isAt(problem, rowOf(name), true))))
        : [],
    isReadOnly,
  };
}

/** A problem as its field says it: with the place inside of the field, where it is about a part of it. */
function words({ path, message }: FieldProblem, place: string): string {
  return path === place ? message : `“${path.slice(place.length).replace(/^\./, '')}”: ${message}`;
}

/** Keeps the configuration from being stored for as long as there is a message. */
export function useBlock(path: readonly PathPart[], message: string | undefined): void {
  const { block } = useEditor();
  const text = pathText(path);
  useEffect(() => {
    if (message === undefined) return;
    block(text, message);
    return () => block(text, undefined);
  }, [block, text, message]);
}
