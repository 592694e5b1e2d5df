import { createContext, useContext, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import type { FieldProblem } from '../../../answers.ts';
import { usePress } from '../../../ui/actions/press.ts';
import { type PathPart, pathText, sameJson, valueAt } from '../../config.ts';
import type { EditorState, EditorStore } from './editor-store.ts';

/** Properties of an editor that do not change while the user types. */
type Model = { store: EditorStore; isNew: boolean; isReadOnly: boolean; callbackUrl: string | undefined };

const Context = createContext<Model | undefined>(undefined);

export const EditorProvider = Context.Provider;

export function useEditor() {
  const model = useContext(Context);
  if (!model) throw new Error('useEditor was called outside an editor');
  return { ...model, set: model.store.set };
}

/** Selects a part of the editor state. The component rerenders only if its content changes. */
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

/** Returns true if there are unsaved changes. */
export function useIsChanged(): boolean {
  return useEdited(({ config, initial, draftProblem }) => draftProblem !== undefined || !sameJson(config, initial));
}

/** Returns the element ID of a field, which the problem list links to. */
export function fieldId(path: string): string {
  return `field-${path}`;
}

/** Returns the messages at a path. If `isDeep`, includes messages below it, prefixed with the inner path. */
export function messagesAt(list: readonly FieldProblem[], at: string, isDeep: boolean): string[] {
  return list.flatMap(({ path, message }) => {
    if (path === at) return [message];
    if (!isDeep || !path.startsWith(at) || !/^[.[]/.test(path.slice(at.length))) return [];
    return [`“${path.slice(at.length).replace(/^\./, '')}”: ${message}`];
  });
}

/** Returns the problems and warnings at a path of the configuration. */
export function useMessages(path: readonly PathPart[], isDeep = false) {
  const at = pathText(path);
  return useEdited(({ problems, warnings, isRevealed, touched }) => ({
    errors: isRevealed || touched.has(at) ? messagesAt(problems, at, isDeep) : [],
    warnings: messagesAt(warnings, at, isDeep),
  }));
}

/** State of an edited value: the value, its messages, and how to change it. */
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

/** Returns the edited value at a path of the configuration. */
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

/** State for input that the configuration cannot hold yet. It is dropped when the edit restarts. */
export function useDraft<Draft>() {
  const restarts = useEdited((state) => state.restarts);
  const [kept, keep] = useState<{ draft: Draft | undefined; of: number }>();
  const setDraft = (draft: Draft | undefined) => keep({ draft, of: restarts });
  return [kept?.of === restarts ? kept.draft : undefined, setDraft] as const;
}

/** Prevents saving while a field has input that the configuration cannot hold. */
export function useBlock(path: string, message: string | undefined): void {
  const { store } = useEditor();
  useEffect(() => {
    if (message === undefined) return;
    store.block(path, message);
    return () => store.block(path, undefined);
  }, [store, path, message]);
}
