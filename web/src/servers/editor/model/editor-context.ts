import { createContext, useContext, useEffect } from 'react';
import type { FieldProblem } from '../../../answers.ts';
import { usePress } from '../../../ui/actions/press.ts';
import { type Config, type PathPart, pathText, valueAt } from '../../config.ts';

export type EditorModel = {
  config: Config;
  isNew: boolean;
  isReadOnly: boolean;
  /** Whether there are changes that are not stored yet. */
  isChanged: boolean;
  problems: readonly FieldProblem[];
  warnings: readonly FieldProblem[];
  callbackUrl: string | undefined;
  set: (path: readonly PathPart[], value: unknown) => void;
  /** From now on the problems at this path are shown. */
  touch: (path: string) => void;
  isShown: (path: string) => boolean;
  /** Reports that a field holds a value that cannot be stored, such as unfinished JSON; undefined when it can again. */
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

/** The value at a path of the configuration, with its problems and warnings. */
export function useField(path: readonly PathPart[], isDeep = false) {
  const { config, set, problems, warnings, touch, isShown, isReadOnly } = useEditor();
  const { beforeClick } = usePress();
  const text = pathText(path);
  const messagesAt = (at: string, list: readonly FieldProblem[]) =>
    list.filter((problem) => isAt(problem, at, isDeep)).map((problem) => messageIn(problem, at));
  const messages = (list: readonly FieldProblem[]) => messagesAt(text, list);
  const rowOf = (name: string) => `${text}.${name}`;
  return {
    id: fieldId(text),
    value: valueAt(config, path),
    set: (value: unknown) => set(path, value),
    touch: () => beforeClick(() => touch(text)),
    errors: isShown(text) ? messages(problems) : [],
    warnings: messages(warnings),
    /** Problems of one of the named rows of this field. */
    errorsOfRow: (name: string) => (isShown(text) && name !== '' ? messagesAt(rowOf(name), problems) : []),
    /** Problems of the field that belong to none of these rows. */
    errorsBeside: (names: readonly string[]) =>
      isShown(text)
        ? messages(problems.filter((problem) => !names.some((name) => name !== '' && isAt(problem, rowOf(name), true))))
        : [],
    isReadOnly,
  };
}

/** The message of a problem at a field; with the inner path, where it is about a part of the field. */
function messageIn({ path, message }: FieldProblem, fieldPath: string): string {
  return path === fieldPath ? message : `“${path.slice(fieldPath.length).replace(/^\./, '')}”: ${message}`;
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
