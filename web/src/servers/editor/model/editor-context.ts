import { createContext, useContext, useEffect, useSyncExternalStore } from 'react';
import type { FieldProblem } from '../../../answers.ts';
import { usePress } from '../../../ui/actions/press.ts';
import { type Config, type PathPart, pathText, sameJson, valueAt } from '../../config.ts';
import type { EditorState, EditorStore } from './editor-store.ts';

/** What stays the same while somebody types. */
export type EditorModel = {
  store: EditorStore;
  /** What is stored, or what a new server begins with. */
  initial: Config;
  isNew: boolean;
  isReadOnly: boolean;
  callbackUrl: string | undefined;
};

/** What is known about the configuration on screen. It changes with an answer of the service, not with a letter. */
export type EditorFindings = {
  problems: readonly FieldProblem[];
  warnings: readonly FieldProblem[];
  /** From now on the problems at this path are shown. */
  touch: (path: string) => void;
  isShown: (path: string) => boolean;
  /** Reports that a field holds a value that cannot be stored, such as unfinished JSON; undefined when it can again. */
  block: (path: string, message: string | undefined) => void;
};

const Model = createContext<EditorModel | undefined>(undefined);
const Findings = createContext<EditorFindings | undefined>(undefined);

export const EditorProvider = Model.Provider;
export const FindingsProvider = Findings.Provider;

export function useEditor() {
  const model = useContext(Model);
  if (!model) throw new Error('there is no editor around this field');
  return { ...model, set: model.store.set };
}

export function useFindings(): EditorFindings {
  const findings = useContext(Findings);
  if (!findings) throw new Error('there is no editor around this field');
  return findings;
}

/** A part of what is edited. The component renders again only when this part is another one. */
export function useEdited<Part>(part: (state: EditorState) => Part): Part {
  const { store } = useEditor();
  return useSyncExternalStore(store.subscribe, () => part(store.now()));
}

export function useValue(path: readonly PathPart[]): unknown {
  return useEdited(({ config }) => valueAt(config, path));
}

/** Whether there are changes that are not stored yet. */
export function useIsChanged(): boolean {
  const { initial } = useEditor();
  return useEdited(({ config, draftProblem }) => draftProblem !== undefined || !sameJson(config, initial));
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
  const { set, isReadOnly } = useEditor();
  const messages = useMessages(path, isDeep);
  return { ...messages, value: useValue(path), set: (value: unknown) => set(path, value), isReadOnly };
}

/** The problems and warnings at a path of the configuration. */
export function useMessages(path: readonly PathPart[], isDeep = false) {
  const { problems, warnings, touch, isShown } = useFindings();
  const { beforeClick } = usePress();
  const text = pathText(path);
  const messagesAt = (at: string, list: readonly FieldProblem[]) =>
    list.filter((problem) => isAt(problem, at, isDeep)).map((problem) => messageIn(problem, at));
  const messages = (list: readonly FieldProblem[]) => messagesAt(text, list);
  const rowOf = (name: string) => `${text}.${name}`;
  return {
    id: fieldId(text),
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
  };
}

/** The message of a problem at a field; with the inner path, where it is about a part of the field. */
function messageIn({ path, message }: FieldProblem, fieldPath: string): string {
  return path === fieldPath ? message : `“${path.slice(fieldPath.length).replace(/^\./, '')}”: ${message}`;
}

/** Keeps the configuration from being stored for as long as there is a message. */
export function useBlock(path: readonly PathPart[], message: string | undefined): void {
  const { block } = useFindings();
  const text = pathText(path);
  useEffect(() => {
    if (message === undefined) return;
    block(text, message);
    return () => block(text, undefined);
  }, [block, text, message]);
}
