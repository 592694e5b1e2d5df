import { Alert, Anchor, Badge, Button, Group, NativeSelect, Stack, Switch, Text } from '@mantine/core';
import { formatImportChanges } from '@toolhost/server/operations/import-changes';
import type { ImportedDescription } from '@toolhost/tool-config/imports';
import { useState } from 'react';
import { Navigate } from 'react-router';
import { api } from '../../api.ts';
import type { ReimportPlan } from '../../api-types.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { getFormErrors } from '../../ui/actions/form-errors.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Section } from '../../ui/section.tsx';
import { ProblemAlert, toSentence } from '../../ui/states/problem-alert.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { Time } from '../../ui/text/time.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { type Source, SourceForm } from '../import/source-form.tsx';
import { useCurrentServer } from '../server-page.tsx';
import { Merge } from './merge.tsx';

/** Tab to reimport the API description of this server. Other servers have no such tab. */
export function ImportTab() {
  const imports = (useCurrentServer().config.imported ?? []) as ImportedDescription[];
  const [chosen, setChosen] = useState(imports[0]?.prefix ?? '');
  const canEdit = useCanEdit();
  if (imports.length === 0) return <Navigate to="../settings" replace />;
  const { document: url } = imports.find(({ prefix = '' }) => prefix === chosen) ?? {};
  return (
    <Stack gap="md">
      {imports.length > 1 && (
        <NativeSelect
          label="Description"
          data={imports.map(({ prefix = '', document }) => ({ value: prefix, label: prefix || (document ?? 'First') }))}
          value={chosen}
          onChange={(event) => setChosen(event.currentTarget.value)}
        />
      )}
      {url === undefined ? (
        <Section
          title="API description"
          text="This server was imported from pasted text. Reimport it from a URL to enable checks."
        />
      ) : (
        <DescriptionSource url={url} />
      )}
      {canEdit ? (
        <ReimportFlow key={chosen} url={url} prefix={chosen} />
      ) : (
        <ViewerNote>Only editors and owners can reimport a description.</ViewerNote>
      )}
    </Stack>
  );
}

/** Source of the description, result of the last check, and the daily check setting. */
function DescriptionSource({ url }: { url: string }) {
  const { slug, imported: lastCheck = { watch: 'never' } } = useCurrentServer().server;
  const { error, changed, counts, checked_at, watch: watched } = lastCheck;
  const canEdit = useCanEdit();
  const refresh = [queryKeys.servers];
  const watch = useAction({
    run: (isOn: boolean) => api('watchImport', { slug, watch: isOn ? 'daily' : 'never' }),
    toast: (_, isOn) => (isOn ? 'The description is now checked daily' : 'The description is no longer checked'),
    refresh,
  });
  const check = useAction({ run: () => api('compareImport', { slug }), refresh });
  const failure = watch.error ?? check.error;
  const checkedState = changed ? ['blue', 'changed'] : ['green', 'up to date'];
  const [color, state] = error ? ['yellow', 'unreadable'] : checkedState;
  return (
    <Section
      title="API description"
      text={
        <>
          Imported from{' '}
          <Anchor href={/^https?:/.test(url) ? url : undefined} rel="noreferrer" target="_blank" className="th-value">
            {toVisible(url)}
          </Anchor>
        </>
      }
      actions={checked_at && <Badge color={color}>{state}</Badge>}
    >
      <Stack gap="sm">
        {error !== undefined && (
          <Alert color="yellow" title="The last check failed">
            {toSentence(error)}
          </Alert>
        )}
        {changed && counts && (
          <Text>Since the last import: {formatImportChanges(counts)}. Reimport to review the changes.</Text>
        )}
        <Group gap="md">
          <Switch
            label="Check daily"
            description="Changes are never applied automatically."
            checked={watched === 'daily'}
            onChange={(event) => watch.mutate(event.currentTarget.checked)}
            disabled={!canEdit || watch.isPending}
          />
          <Button variant="default" onClick={() => check.mutate()} loading={check.isPending} disabled={!canEdit}>
            Check now
          </Button>
          {checked_at && (
            <Text c="dimmed">
              Last checked <Time at={checked_at} />.
            </Text>
          )}
        </Group>
        {failure && <ProblemAlert error={failure} />}
      </Stack>
    </Section>
  );
}

type SavedVersions = { version: number; previous: number };

function ReimportFlow({ url, prefix }: { url: string | undefined; prefix: string }) {
  const { slug, version } = useCurrentServer().server;
  const [readResult, setReadResult] = useState<{ source: Source; plan: ReimportPlan; readAt: number }>();
  const [saved, setSaved] = useState<SavedVersions>();
  const readAction = useAction({
    run: (source: Source) => api('reimportApi', { slug, prefix, ...source, mode: 'plan', offered: 'all' }),
    onSuccess: (plan, source) => {
      setReadResult({ plan, source, readAt: performance.now() });
      setSaved(undefined);
    },
  });
  return (
    <>
      {saved && <SavedNote saved={saved} onUndone={() => setSaved(undefined)} />}
      <SourceForm
        title="Reimport"
        text="Reads the description again. Your edits are kept; all other fields are updated from the description. You can review the changes before anything is saved."
        url={url}
        readSource={readResult?.source}
        onRead={(source) => readAction.mutate(source)}
        isReading={readAction.isPending}
        formErrors={getFormErrors(readAction, readAction.variables ?? {})}
      />
      {readResult && (
        <Merge
          key={readResult.readAt}
          plan={readResult.plan}
          source={readResult.source}
          prefix={prefix}
          version={version}
          onSaved={(next) => {
            setReadResult(undefined);
            setSaved({ version: next, previous: version });
          }}
        />
      )}
    </>
  );
}

/** Shows which version was saved, with a button to undo it. */
function SavedNote({ saved: { version, previous }, onUndone }: { saved: SavedVersions; onUndone: () => void }) {
  const { slug } = useCurrentServer().server;
  const undo = useAction({
    run: () => api('restoreVersion', { slug, version: previous }, { version }),
    toast: (restored) => `Restored version ${previous} as version ${restored.server.version}`,
    refresh: [queryKeys.servers],
    onSuccess: onUndone,
  });
  return (
    <Alert color="green" title={`Saved as version ${version}`} role="status">
      <Text>Agents now get the changed tools. The previous version is kept.</Text>
      {undo.error && <ProblemAlert error={undo.error} title="Undo failed" />}
      <Button mt="sm" variant="default" onClick={() => undo.mutate()} loading={undo.isPending}>
        Undo: restore version {previous}
      </Button>
    </Alert>
  );
}
