import { Box, Stack } from '@mantine/core';
import type { UseMutationResult } from '@tanstack/react-query';
import { lazy, type ReactNode, type RefObject, Suspense, useDeferredValue, useEffect, useMemo, useState } from 'react';
import { createPortal } from 'react-dom';
import type { StoredServer } from '../../answers.ts';
import { ApiProblem } from '../../api.ts';
import { usePress } from '../../ui/actions/press.ts';
import { Loading } from '../../ui/states/loading.tsx';
import { ProblemAlert } from '../../ui/states/problem-alert.tsx';
import { visibleJson } from '../../ui/text/visible.ts';
import { type Config, textOf } from '../config.ts';
import { ConfigForm } from './config-form.tsx';
import { EditorProvider, useEdited, useEditor, useIsChanged } from './model/editor-context.ts';
import { createEditorStore } from './model/editor-store.ts';
import { isCertain } from './model/findings.ts';
import { goToField } from './model/go-to-field.ts';
import { KnownProblems, useChecking } from './model/known-problems.tsx';
import { ProblemList } from './problem-list.tsx';
import { SaveBar } from './save-bar.tsx';
import { UnsavedGuard } from './unsaved-guard.tsx';
import { useView, ViewSwitch } from './view-switch.tsx';

const JsonView = lazy(async () => ({ default: (await import('./json/json-view.tsx')).JsonView }));

type Inner = {
  saving: UseMutationResult<StoredServer, Error, Config>;
  /** Shown when another person has changed the server meanwhile. */
  conflict?: ((mine: Config) => ReactNode) | undefined;
  /** Beside Save while there is something to store. */
  message?: ReactNode;
};

type Props = Inner & {
  initial: Config;
  /** An edit to go on with. */
  changed?: Config | undefined;
  isNew: boolean;
  isReadOnly?: boolean;
  startsInJson?: boolean;
  /** Kept equal to the configuration on screen; undefined while the JSON there cannot be read. */
  onScreen?: RefObject<Config | undefined>;
  callbackUrl?: string | undefined;
};

/** Form and JSON of a configuration, side by side on one model. */
export function Editor({ initial, changed, isNew, isReadOnly = false, startsInJson = false, ...props }: Props) {
  const { saving, onScreen, callbackUrl, conflict, message } = props;
  const [store] = useState(() => createEditorStore(changed ?? initial, startsInJson));
  const model = useMemo(
    () => ({ store, initial, isNew, isReadOnly, callbackUrl }),
    [store, initial, isNew, isReadOnly, callbackUrl],
  );
  useEffect(() => {
    const keep = () => {
      const { config, draftProblem } = store.now();
      if (onScreen) onScreen.current = draftProblem ? undefined : config;
    };
    keep();
    return store.subscribe(keep);
  }, [store, onScreen]);
  return (
    <EditorProvider value={model}>
      <KnownProblems isNew={isNew} saving={saving} fixedSlug={isNew ? undefined : textOf(initial.slug)}>
        <Page saving={saving} conflict={conflict} message={message} startsInJson={startsInJson} />
      </KnownProblems>
    </EditorProvider>
  );
}

function Page({ saving, conflict, message, startsInJson }: Inner & { startsInJson: boolean }) {
  const { store, isNew, isReadOnly } = useEditor();
  const { view, isWide, choose } = useView(startsInJson, store.now().config);
  const { error } = saving;
  const notice = isOverNewer(error)
    ? conflict?.(store.now().config)
    : error && !isListed(error) && <ProblemAlert error={error} title="Not saved" />;
  const isChanged = useIsChanged();
  // The place in the drawer of a tool, while one is open.
  const [beside, setBeside] = useState<HTMLDivElement | null>(null);
  const bar = (
    <>
      {beside && notice}
      {!isReadOnly && <Saving saving={saving} message={message} isChanged={isChanged} />}
    </>
  );
  return (
    <Stack gap="md">
      {!beside && notice}
      <ViewSwitch view={view} isWide={isWide} onChange={choose} />
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

const none: never[] = [];

function Json() {
  const { store, isReadOnly } = useEditor();
  const { problems, warnings, isRevealed, reveal } = useChecking();
  const { beforeClick } = usePress();
  const draft = useEdited((state) => state.draft);
  const draftProblem = useEdited((state) => state.draftProblem);
  // The text of many tools takes longer to write than a letter to type, which does not wait for it.
  const config = useDeferredValue(useEdited((state) => state.config));
  const written = useMemo(() => (draft === undefined ? visibleJson(config) : ''), [draft, config]);
  return (
    <JsonView
      text={draft ?? written}
      unreadable={draftProblem}
      problems={isRevealed ? problems : none}
      warnings={warnings}
      onChange={(text) => {
        store.setText(text);
        reveal();
      }}
      onBlur={() => beforeClick(store.settleText)}
      isReadOnly={isReadOnly}
    />
  );
}

/** The bar with Save: on the page, and in the drawer of a tool. */
function Saving({ saving, message, isChanged }: Pick<Inner, 'saving' | 'message'> & { isChanged: boolean }) {
  const { store, initial, isNew } = useEditor();
  const { problems, warnings, isBehind, isBlocked, isRevealed, reveal } = useChecking();
  const hasDraftProblem = useEdited((state) => state.draftProblem !== undefined);
  const save = () => {
    reveal();
    if (hasDraftProblem) return;
    if (problems.length === 0 || (isBehind && !isBlocked)) saving.mutate(store.now().config);
    else goToField(problems[0]?.path ?? '');
  };
  return (
    <SaveBar
      isNew={isNew}
      isChanged={isChanged}
      isBehind={isBehind}
      isSaving={saving.isPending}
      message={message}
      problems={isRevealed ? problems.filter(isCertain).length + (hasDraftProblem ? 1 : 0) : 0}
      warnings={warnings.filter(isCertain).length}
      onSave={save}
      onReset={() => store.reset(initial)}
    />
  );
}

/** Whether the list of problems already has it, field by field. */
function isListed(failure: Error): boolean {
  return failure instanceof ApiProblem && failure.problems.length > 0;
}

/** Whether another person has stored a newer version. */
function isOverNewer(failure: Error | null): boolean {
  return failure instanceof ApiProblem && failure.status === 409 && failure.problems.length === 0;
}
