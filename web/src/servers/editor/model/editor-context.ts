import { createContext, useContext, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import type { FieldProblem } from '../../../answers.ts';
import { usePress } from '../../../ui/actions/press.ts';
import { type PathPart, pathText, sameJson, valueAt } from '../../config.ts';
import type { EditorState, EditorStore } from './editor-store.ts';

/** What stays the same while somebody types. */
type Model = { store: EditorStore; isNew: boolean; isReadOnly: boolean; callbackUrl: string | undefined };

const Context = createContext<Model | undefined>(undefined);

export const EditorProvider = Context.Provider;

export function useEditor() {
  const model = useContext(Context);
  if (!model) throw new Error('there is no editor around this field');
  return { ...model, set: model.store.set };
}

/** A part of what is edited. The component renders again only when this part says something else. */
export function useEdited<Part>(part: (state: EditorState) => Part): Part {
  const { store } = useEditor();
  const last = useRef<Part>(undefined);
  return useSyncExternalStore(store.subscribe, () => {
    const next = part(store.now());
    if (last.current === undefined || !sameJson(last.current, next)) last.current = next;
    return last.current as Part;
  });
}

export function useValue(path: readonly PathPart[]): unknown {
  return useEdited(({ config }) => valueAt(config, path));
}

/** Whether there are changes that are not stored yet. */
export function useIsChanged(): boolean {
  return useEdited(({ config, initial, draftProblem }) => draftProblem !== undefined || !sameJson(config, initial));
}

/** The id of a field, by which the list of problems leads to it. */
export function fieldId(path: string): string {
  return `field-${path}`;
}

/** The messages at a path, or also below it, with the inner path where they are about a part of the field. */
export function messagesAt(list: readonly FieldProblem[], at: string, isDeep: boolean): string[] {
  return list.flatMap(({ path, message }) => {
    if (path === at) return [message];
    if (!isDeep || !path.startsWith(at) || !/^[.[]/.test(path.slice(at.length))) return [];
    return [`“${path.slice(at.length).replace(/^\./, '')}”: ${message}`];
  });
}

/** The problems and warnings at a path of the configuration. */
export function useMessages(path: readonly PathPart[], isDeep = false) {
  const at = pathText(path);
  return useEdited(({ problems, warnings, isRevealed, touched }) => ({
    errors: isRevealed || touched.has(at) ? messagesAt(problems, at, isDeep) : [],
    warnings: messagesAt(warnings, at, isDeep),
  }));
}

/** What an input edits: a value, and what is known of it. */
export type Edited = {
  path: string;
  id: string | undefined;
  value: unknown;
  set: (value: unknown) => void;
  touch: () => void;
  errors: readonly string[];
  warnings: readonly string[];
  isReadOnly: boolean;
};

/** The value at a path of the configuration, with its problems and warnings. */
export function useField(path: readonly PathPart[], isDeep = false): Edited {
  const { store, isReadOnly } = useEditor();
  const { beforeClick } = usePress();
  const at = pathText(path);
  return {
    ...useMessages(path, isDeep),
    path: at,
    id: fieldId(at),
    value: useValue(path),
    set: (value) => store.set(path, value),
    touch: () => beforeClick(() => store.touch(at)),
    isReadOnly,
  };
}

/** What a field holds that the configuration does not, until the edit begins again. */
export function useDraft<Draft>() {
  const restarts = useEdited((state) => state.restarts);
  const [kept, keep] = useState<{ draft: Draft | undefined; of: number }>();
  const setDraft = (draft: Draft | undefined) => keep({ draft, of: restarts });
  return [kept?.of === restarts ? kept.draft : undefined, setDraft] as const;
}

/** Keeps the configuration from being stored while a field holds something that it cannot hold. */
export function useBlock(path: string, message: string | undefined): void {
  const { store } = useEditor();
  useEffect(() => {
    if (message === undefined) return;
    store.block(path, message);
    return () => store.block(path, undefined);
  }, [store, path, message]);
}
