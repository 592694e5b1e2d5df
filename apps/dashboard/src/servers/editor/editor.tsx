import { Box, Group, SegmentedControl, Stack } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { lazy, type ReactNode, Suspense, useMemo, useState } from 'react';
import { createPortal } from 'react-dom';
import { ApiProblem } from '../../api.ts';
import { usePress } from '../../ui/actions/press.ts';
import { Loading } from '../../ui/states/loading.tsx';
import { ProblemAlert } from '../../ui/states/problem-alert.tsx';
import { toVisibleJson } from '../../ui/text/visible.ts';
import { ConfigForm } from './config-form.tsx';
import { EditorProvider, useEditor, useEditorState, useIsChanged } from './model/editor-context.ts';
import type { EditorStore } from './model/editor-store.ts';
import { type Saving, useVerdict } from './model/use-verdict.ts';
import { ProblemList } from './problem-list.tsx';
import { SaveBar, SecretsToSet } from './save-bar.tsx';
import { UnsavedGuard } from './unsaved-guard.tsx';

const JsonView = lazy(async () => ({ default: (await import('./json/json-view.tsx')).JsonView }));

type EditorPageProps = {
  saving: Saving;
  /** Shown if someone else has changed the server since it was loaded. */
  conflict?: ReactNode;
  /** Shown next to Save while there are unsaved changes. */
  message?: ReactNode;
  startsInJson?: boolean;
};

type Props = EditorPageProps & {
  store: EditorStore;
  isNew: boolean;
  isReadOnly?: boolean;
  callbackUrl?: string | undefined;
};

/** Form and JSON view of a configuration, which share one store. */
export function Editor({ store, isNew, isReadOnly = false, callbackUrl, ...pageProps }: Props) {
  const model = useMemo(() => ({ store, isNew, isReadOnly, callbackUrl }), [store, isNew, isReadOnly, callbackUrl]);
  return (
    <EditorProvider value={model}>
      <Verdict saving={pageProps.saving} />
      <Page {...pageProps} />
    </EditorProvider>
  );
}

/** Separate component, because it renders on every keystroke. */
function Verdict({ saving }: { saving: Saving }) {
  useVerdict(saving);
  return null;
}

function Page({ saving, conflict, message, startsInJson = false }: EditorPageProps) {
  const { isNew, isReadOnly } = useEditor();
  const [view, viewControl] = useView(startsInJson);
  const isChanged = useIsChanged();
  // Container for the save bar in the tool drawer, while the drawer is open.
  const [drawerBar, setDrawerBar] = useState<HTMLDivElement | null>(null);
  // Container for the actions of the Tools tab, next to the choice of the view.
  const [toolBar, setToolBar] = useState<HTMLDivElement | null>(null);
  const { error } = saving;
  const hasProblemList = error instanceof ApiProblem && error.problems.length > 0;
  const isConflict = error instanceof ApiProblem && error.status === 409 && !hasProblemList;
  const alert = isConflict ? conflict : error && !hasProblemList && <ProblemAlert error={error} title="Not saved" />;
  const bar = (
    <>
      {drawerBar && alert}
      {!isReadOnly && <SaveBar saving={saving} message={message} />}
    </>
  );
  return (
    <Stack gap="md">
      {!drawerBar && alert}
      {!isReadOnly && !isChanged && <SecretsToSet isChanged={false} />}
      <Group justify="space-between" gap="sm">
        {viewControl}
        <div ref={setToolBar} />
      </Group>
      <ProblemList />
      <Box className="th-editor" inert={isNew && saving.isPending}>
        {view === 'form' ? (
          <ConfigForm saveBarRef={setDrawerBar} toolBar={toolBar} />
        ) : (
          <Suspense fallback={<Loading rows={1} height={380} />}>
            <Json />
          </Suspense>
        )}
      </Box>
      {drawerBar ? createPortal(bar, drawerBar) : bar}
      <UnsavedGuard isUnsaved={isChanged && !saving.isPending && !(isNew && saving.isSuccess)} />
    </Stack>
  );
}

type View = 'form' | 'json';

/**
 * Returns the current view, form or JSON, and the control to change it. A new server starts in the view that its
 * starting point implies, a stored one in the view that this browser used last.
 */
function useView(startsInJson: boolean) {
  const { isNew } = useEditor();
  const [lastView, setLastView] = useLocalStorage<View>({
    key: 'toolhost-editor-view',
    defaultValue: 'form',
    getInitialValueInEffect: false,
  });
  const [startView, setStartView] = useState<View>(startsInJson ? 'json' : 'form');
  const view = isNew ? startView : lastView;
  const control = (
    <SegmentedControl
      className="th-modes"
      data={[
        { value: 'form', label: 'Form' },
        { value: 'json', label: 'JSON' },
      ]}
      value={view}
      onChange={(next) => {
        setStartView(next as View);
        setLastView(next as View);
      }}
      aria-label="View"
    />
  );
  return [view, control] as const;
}

const noProblems: never[] = [];

function Json() {
  const { store, isReadOnly } = useEditor();
  const { beforeClick } = usePress();
  const { draft, draftProblem } = useEditorState((state) => ({ draft: state.draft, draftProblem: state.draftProblem }));
  const problems = useEditorState((state) => (state.isRevealed ? state.problems : noProblems));
  const warnings = useEditorState((state) => state.warnings);
  const config = useEditorState((state) => state.config);
  const serialized = useMemo(() => (draft === undefined ? toVisibleJson(config) : ''), [draft, config]);
  return (
    <JsonView
      text={draft ?? serialized}
      parseError={draftProblem}
      problems={problems}
      warnings={warnings}
      onChange={store.setText}
      onBlur={() => beforeClick(store.settleText)}
      isReadOnly={isReadOnly}
    />
  );
}
