import { createContext, useContext, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import type { FieldProblem } from '../../../api-types.ts';
import { usePress } from '../../../ui/actions/press.ts';
import { formatPath, getValueAt, isJsonEqual, type PathSegment } from '../../config.ts';
import type { EditorState, EditorStore } from './editor-store.ts';

/** Properties of an editor that do not change while the user types. */
type EditorModel = { store: EditorStore; isNew: boolean; isReadOnly: boolean; callbackUrl: string | undefined };

const Context = createContext<EditorModel | undefined>(undefined);

export const EditorProvider = Context.Provider;

export function useEditor() {
  const model = useContext(Context);
  if (!model) throw new Error('useEditor was called outside an editor');
  return { ...model, set: model.store.set };
}

/** Selects a part of the editor state. The component rerenders only if its content changes. */
export function useEditorState<Selected>(selector: (state: EditorState) => Selected): Selected {
  const { store } = useEditor();
  const lastRef = useRef<Selected>(undefined);
  return useSyncExternalStore(store.subscribe, () => {
    const next = selector(store.getState());
    if (lastRef.current === undefined || !isJsonEqual(lastRef.current, next)) lastRef.current = next;
    return lastRef.current as Selected;
  });
}

export function useValue(path: readonly PathSegment[]): unknown {
  return useEditorState(({ config }) => getValueAt(config, path));
}

/** Returns true if there are unsaved changes. */
export function useIsChanged(): boolean {
  return useEditorState(
    ({ config, initial, draftProblem }) => draftProblem !== undefined || !isJsonEqual(config, initial),
  );
}

/** Returns the element ID of a field, which the problem list links to. */
export function getFieldId(path: string): string {
  return `field-${path}`;
}

/** Returns the messages at a path. With `isDeep`, also those of inner fields, each with its inner path. */
export function getMessages(list: readonly FieldProblem[], outerPath: string, isDeep: boolean): string[] {
  return list.flatMap(({ path, message }) => {
    if (path === outerPath) return [message];
    const innerPath = path.slice(outerPath.length);
    if (!isDeep || !path.startsWith(outerPath) || !/^[.[]/.test(innerPath)) return [];
    return [`“${innerPath.replace(/^\./, '')}”: ${message}`];
  });
}

/** Returns the problems and warnings at a path of the configuration. */
export function useMessages(path: readonly PathSegment[], isDeep = false) {
  const fieldPath = formatPath(path);
  return useEditorState(({ problems, warnings, isRevealed, touched }) => ({
    errors: isRevealed || touched.has(fieldPath) ? getMessages(problems, fieldPath, isDeep) : [],
    warnings: getMessages(warnings, fieldPath, isDeep),
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
export function useField(path: readonly PathSegment[], isDeep = false): Edited {
  const { store, isReadOnly } = useEditor();
  const { beforeClick } = usePress();
  const fieldPath = formatPath(path);
  return {
    ...useMessages(path, isDeep),
    path: fieldPath,
    id: getFieldId(fieldPath),
    value: useValue(path),
    set: (value) => store.set(path, value),
    touch: () => beforeClick(() => store.touch(fieldPath)),
    isReadOnly,
  };
}

/** State for unfinished input, which the configuration cannot hold yet. It is dropped when the edit restarts. */
export function useDraft<Draft>() {
  const restartCount = useEditorState((state) => state.restartCount);
  const [draftState, setDraftState] = useState<{ draft: Draft | undefined; restartCount: number }>();
  const setDraft = (draft: Draft | undefined) => setDraftState({ draft, restartCount });
  return [draftState?.restartCount === restartCount ? draftState.draft : undefined, setDraft] as const;
}

/** Prevents saving while a field has unfinished input. `message` is the reason. */
export function useSaveBlock(path: string, message: string | undefined): void {
  const { store } = useEditor();
  useEffect(() => {
    if (message === undefined) return;
    store.setBlock(path, message);
    return () => store.setBlock(path, undefined);
  }, [store, path, message]);
}
