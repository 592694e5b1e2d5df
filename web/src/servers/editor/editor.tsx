import { Box, Stack } from '@mantine/core';
import type { UseMutationResult } from '@tanstack/react-query';
import { type ReactNode, type RefObject, useEffect, useState } from 'react';
import type { StoredServer } from '../../answers.ts';
import { ApiProblem } from '../../api.ts';
import { usePress } from '../../ui/actions/press.ts';
import { ProblemAlert, sentence } from '../../ui/states/problem-alert.tsx';
import { type Config, textOf } from '../config.ts';
import { ConfigForm } from './config-form.tsx';
import { JsonView } from './json/json-view.tsx';
import { type EditorModel, EditorProvider } from './model/editor-context.ts';
import { isCertain, type Known } from './model/findings.ts';
import { goToField } from './model/go-to-field.ts';
import { useBlocks } from './model/use-blocks.ts';
import { useEditorModel, withoutStored } from './model/use-editor-model.ts';
import { useKnown } from './model/use-known.ts';
import { useVerdict } from './model/use-verdict.ts';
import { ProblemList } from './problem-list.tsx';
import { SaveBar } from './save-bar.tsx';
import { UnsavedGuard } from './unsaved-guard.tsx';
import { useView, ViewSwitch } from './view-switch.tsx';

type Props = {
  initial: Config;
  /** An edit to go on with. */
  changed?: Config | undefined;
  isNew: boolean;
  isReadOnly?: boolean;
  startsInJson?: boolean;
  saving: UseMutationResult<StoredServer, Error, Config>;
  /** Kept equal to the configuration on screen; undefined while the JSON there cannot be read. */
  onScreen?: RefObject<Config | undefined>;
  storedSecrets: readonly string[];
  callbackUrl?: string | undefined;
  /** Shown when another person has changed the server meanwhile. */
  conflict?: (mine: Config) => ReactNode;
};

/** Form and JSON of a configuration, side by side on one model. */
export function Editor({ initial, changed, isNew, isReadOnly = false, startsInJson = false, ...props }: Props) {
  const { saving, onScreen, storedSecrets, callbackUrl, conflict } = props;
  const { beforeClick } = usePress();
  const model = useEditorModel(initial, changed, startsInJson);
  const { view, isWide, choose } = useView(startsInJson);
  const [isRevealed, setRevealed] = useState(!isNew);
  const { checked, isBehind } = useVerdict(model.config);
  const { block, blocked } = useBlocks();
  const { problems, warnings, isBlocked } = useKnown({
    config: model.config,
    checked,
    saving,
    blocked,
    fixedSlug: isNew ? undefined : textOf(initial.slug),
  });
  const context: EditorModel = {
    config: model.config,
    isNew,
    isReadOnly,
    isChanged: model.isChanged,
    problems,
    warnings: withoutStored(warnings, storedSecrets),
    callbackUrl,
    set: model.set,
    touch: model.touch,
    isShown: (path) => isRevealed || model.touched.has(path),
    block,
  };
  useEffect(() => {
    if (onScreen) onScreen.current = model.draftProblem ? undefined : model.config;
  });
  const save = () => {
    setRevealed(true);
    if (model.draftProblem) return;
    if (problems.length === 0 || (isBehind && !isBlocked)) saving.mutate(model.config);
    else goToField(problems[0]?.path ?? '');
  };
  const isConflict = isOverNewer(saving.error);
  const isUnsaved = model.isChanged && !saving.isPending && !(isNew && saving.isSuccess);
  return (
    <EditorProvider value={context}>
      <Stack gap="md">
        {isConflict && conflict?.(model.config)}
        {saving.error && !isConflict && !isListed(saving.error) && (
          <ProblemAlert error={saving.error} title="Not saved" />
        )}
        <ViewSwitch view={view} isWide={isWide} onChange={choose} />
        {isRevealed && <ProblemList problems={problems} draftProblem={model.draftProblem} />}
        <Box className="th-editor" data-view={view} inert={isNew && saving.isPending}>
          {view !== 'json' && <ConfigForm />}
          {view !== 'form' && (
            <JsonView
              text={model.text}
              problem={model.draftProblem ?? (view === 'json' && isRevealed ? inWords(problems) : undefined)}
              onChange={(text) => {
                model.setText(text);
                setRevealed(true);
              }}
              onBlur={() => beforeClick(model.settleText)}
              isReadOnly={isReadOnly}
            />
          )}
        </Box>
        {!isReadOnly && (
          <SaveBar
            isNew={isNew}
            isChanged={model.isChanged}
            isBehind={isBehind}
            isSaving={saving.isPending}
            problems={isRevealed ? problems.filter(isCertain).length + (model.draftProblem ? 1 : 0) : 0}
            warnings={context.warnings.filter(isCertain).length}
            onSave={save}
            onReset={model.reset}
          />
        )}
        <UnsavedGuard isUnsaved={isUnsaved} />
      </Stack>
    </EditorProvider>
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

const mostLines = 3;

/** The first problems, for the field that holds the whole configuration. */
function inWords(problems: readonly Known[]): string | undefined {
  if (problems.length === 0) return undefined;
  const lines = problems
    .slice(0, mostLines)
    .map(({ path, message }) => sentence(path ? `${path}: ${message}` : message));
  const more = problems.length > mostLines ? ` And ${problems.length - mostLines} more.` : '';
  return lines.join(' ') + more;
}
