import { Box, SegmentedControl, Stack } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { lazy, type ReactNode, Suspense, useDeferredValue, useMemo, useState } from 'react';
import { createPortal } from 'react-dom';
import { ApiProblem } from '../../api.ts';
import { usePress } from '../../ui/actions/press.ts';
import { Loading } from '../../ui/states/loading.tsx';
import { ProblemAlert } from '../../ui/states/problem-alert.tsx';
import { visibleJson } from '../../ui/text/visible.ts';
import { ConfigForm } from './config-form.tsx';
import { EditorProvider, useEdited, useEditor, useIsChanged } from './model/editor-context.ts';
import type { EditorStore } from './model/editor-store.ts';
import { type Saving, useVerdict } from './model/use-verdict.ts';
import { ProblemList } from './problem-list.tsx';
import { SaveBar } from './save-bar.tsx';
import { UnsavedGuard } from './unsaved-guard.tsx';

const JsonView = lazy(async () => ({ default: (await import('./json/json-view.tsx')).JsonView }));

type Inner = {
  saving: Saving;
  /** Shown when another person has changed the server meanwhile. */
  conflict?: ReactNode;
  /** Beside Save while there is something to store. */
  message?: ReactNode;
  startsInJson?: boolean;
};

type Props = Inner & { store: EditorStore; isNew: boolean; isReadOnly?: boolean; callbackUrl?: string | undefined };

/** Form and JSON of a configuration, side by side on one model. */
export function Editor({ store, isNew, isReadOnly = false, callbackUrl, ...inner }: Props) {
  const model = useMemo(() => ({ store, isNew, isReadOnly, callbackUrl }), [store, isNew, isReadOnly, callbackUrl]);
  return (
    <EditorProvider value={model}>
      <Verdict saving={inner.saving} />
      <Page {...inner} />
    </EditorProvider>
  );
}

/** Follows every letter, so that what is around it need not. */
function Verdict({ saving }: { saving: Saving }) {
  useVerdict(saving);
  return null;
}

function Page({ saving, conflict, message, startsInJson = false }: Inner) {
  const { isNew, isReadOnly } = useEditor();
  const [view, viewSwitch] = useView(startsInJson);
  const isChanged = useIsChanged();
  // The place in the drawer of a tool, while one is open.
  const [beside, setBeside] = useState<HTMLDivElement | null>(null);
  const { error } = saving;
  const isListed = error instanceof ApiProblem && error.problems.length > 0;
  const isOverNewer = error instanceof ApiProblem && error.status === 409 && !isListed;
  const notice = isOverNewer ? conflict : error && !isListed && <ProblemAlert error={error} title="Not saved" />;
  const bar = (
    <>
      {beside && notice}
      {!isReadOnly && <SaveBar saving={saving} message={message} />}
    </>
  );
  return (
    <Stack gap="md">
      {!beside && notice}
      <Box>{viewSwitch}</Box>
      <ProblemList />
      <Box className="th-editor" data-view={view} inert={isNew && saving.isPending}>
        {view !== 'json' && <ConfigForm bar={setBeside} />}
        {view !== 'form' && (
          <Suspense fallback={<Loading rows={1} height={380} />}>
            <Json />
          </Suspense>
        )}
      </Box>
      {beside ? createPortal(bar, beside) : bar}
      <UnsavedGuard isUnsaved={isChanged && !saving.isPending && !(isNew && saving.isSuccess)} />
    </Stack>
  );
}

type View = 'form' | 'both' | 'json';

/** Length from which the JSON is beside the form only when somebody asks for it: it is written anew with every letter. */
const longText = 100_000;

/** Which side is shown: form, JSON, or both where the window is wide enough; and the control that chooses. */
function useView(startsInJson: boolean) {
  const { store } = useEditor();
  const isWide = useMediaQuery('(min-width: 78em)', true, { getInitialValueInEffect: false });
  const [chosen, choose] = useState<View>(() => {
    if (isWide && JSON.stringify(store.now().config).length < longText) return 'both';
    return startsInJson ? 'json' : 'form';
  });
  const view: View = chosen === 'both' && !isWide ? 'form' : chosen;
  const choices = [
    { value: 'form', label: 'Form' },
    ...(isWide ? [{ value: 'both', label: 'Form and JSON' }] : []),
    { value: 'json', label: 'JSON' },
  ];
  const control = (
    <SegmentedControl
      size="xs"
      data={choices}
      value={view}
      onChange={(next) => choose(next as View)}
      aria-label="View"
    />
  );
  return [view, control] as const;
}

const none: never[] = [];

function Json() {
  const { store, isReadOnly } = useEditor();
  const { beforeClick } = usePress();
  const { draft, draftProblem } = useEdited((state) => ({ draft: state.draft, draftProblem: state.draftProblem }));
  const problems = useEdited((state) => (state.isRevealed ? state.problems : none));
  const warnings = useEdited((state) => state.warnings);
  // The text of many tools takes longer to write than a letter to type, which does not wait for it.
  const config = useDeferredValue(useEdited((state) => state.config));
  const written = useMemo(() => (draft === undefined ? visibleJson(config) : ''), [draft, config]);
  return (
    <JsonView
      text={draft ?? written}
      unreadable={draftProblem}
      problems={problems}
      warnings={warnings}
      onChange={store.setText}
      onBlur={() => beforeClick(store.settleText)}
      isReadOnly={isReadOnly}
    />
  );
}
