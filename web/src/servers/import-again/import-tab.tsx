import { Alert, Anchor, Badge, Button, Group, Stack, Switch, Text } from '@mantine/core';
import { useState } from 'react';
import { changesText } from '../../../../src/operations/import-changes.ts';
import type { ImportAgainPlan } from '../../answers.ts';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { refusalOf } from '../../ui/actions/refusal.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Section } from '../../ui/section.tsx';
import { ProblemAlert, sentence } from '../../ui/states/problem-alert.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { Time } from '../../ui/text/time.tsx';
import { visible } from '../../ui/text/visible.ts';
import { type Source, SourceForm } from '../import/source-form.tsx';
import { useShownServer } from '../server-page.tsx';
import { Merge } from './merge.tsx';

/** Tab to reimport the API description of this server. */
export function ImportTab() {
  const { document: url } = (useShownServer().config.imported ?? {}) as { document?: string };
  return (
    <Stack gap="md">
      {url === undefined ? (
        <Section
          title="Description"
          text="This server was imported from pasted text. Reimport it from a URL to enable checks."
        />
      ) : (
        <Origin url={url} />
      )}
      {useCanEdit() ? (
        <AgainFlow url={url} />
      ) : (
        <ViewerNote>Only editors and owners can reimport a description.</ViewerNote>
      )}
    </Stack>
  );
}

/** Source of the description, result of the last check, and the daily check setting. */
function Origin({ url }: { url: string }) {
  const { slug, imported = { watch: 'never' } } = useShownServer().server;
  const { error, changed, counts, checked_at, watch: watched } = imported;
  const canEdit = useCanEdit();
  const refresh = [queryKeys.servers];
  const watch = useAction({
    run: (isOn: boolean) => api('watchImport', { slug, watch: isOn ? 'daily' : 'never' }),
    done: (_, isOn) => (isOn ? 'The description is now checked daily' : 'The description is no longer checked'),
    refresh,
  });
  const check = useAction({ run: () => api('compareImport', { slug }), refresh });
  const failure = watch.error ?? check.error;
  const [color, state] = error ? ['yellow', 'unreadable'] : changed ? ['blue', 'changed'] : ['green', 'up to date'];
  return (
    <Section
      title="Description"
      text={
        <>
          Imported from{' '}
          <Anchor
            href={/^https?:/.test(url) ? url : undefined}
            rel="noreferrer"
            target="_blank"
            size="sm"
            className="th-value"
          >
            {visible(url)}
          </Anchor>
        </>
      }
      actions={checked_at && <Badge color={color}>{state}</Badge>}
    >
      <Stack gap="sm">
        {error !== undefined && (
          <Alert color="yellow" title="The last check failed">
            {sentence(error)}
          </Alert>
        )}
        {changed && counts && (
          <Text size="sm">Since the last import: {changesText(counts)}. Reimport to review the changes.</Text>
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
            <Text size="sm" c="dimmed">
              Last checked <Time at={checked_at} />.
            </Text>
          )}
        </Group>
        {failure && <ProblemAlert error={failure} />}
      </Stack>
    </Section>
  );
}

/** Version stored by a reimport, and the one before it. */
type Stored = { version: number; before: number };

function AgainFlow({ url }: { url: string | undefined }) {
  const { slug, version } = useShownServer().server;
  const [read, setRead] = useState<{ source: Source; plan: ImportAgainPlan; at: number }>();
  const [stored, setStored] = useState<Stored>();
  const reading = useAction({
    run: (source: Source) => api('importAgain', { slug, ...source, mode: 'plan', offered: 'all' }),
    onDone: (plan, source) => {
      setRead({ plan, source, at: performance.now() });
      setStored(undefined);
    },
  });
  return (
    <>
      {stored && <StoredNote stored={stored} onUndone={() => setStored(undefined)} />}
      <SourceForm
        title="Reimport"
        text="Reads the description again. Your edits are kept, other fields follow the description. You review the changes before anything is stored."
        url={url}
        onRead={(source) => reading.mutate(source)}
        isReading={reading.isPending}
        refusal={refusalOf(reading, reading.variables ?? {})}
      />
      {read && (
        <Merge
          key={read.at}
          plan={read.plan}
          source={read.source}
          version={version}
          onStored={(next) => {
            setRead(undefined);
            setStored({ version: next, before: version });
          }}
        />
      )}
    </>
  );
}

/** Shows which version was stored, with a button to undo it. */
function StoredNote({ stored: { version, before }, onUndone }: { stored: Stored; onUndone: () => void }) {
  const { slug } = useShownServer().server;
  const undo = useAction({
    run: () => api('restoreVersion', { slug, version: before }, { version }),
    done: (restored) => `Restored version ${before} as version ${restored.server.version}`,
    refresh: [queryKeys.servers],
    onDone: onUndone,
  });
  return (
    <Alert color="green" title={`Saved as version ${version}`} role="status">
      <Text size="sm">Agents now get the changed tools. The previous version is kept.</Text>
      {undo.error && <ProblemAlert error={undo.error} title="Not undone" />}
      <Button size="xs" mt="sm" variant="default" onClick={() => undo.mutate()} loading={undo.isPending}>
        Undo: restore version {before}
      </Button>
    </Alert>
  );
}
