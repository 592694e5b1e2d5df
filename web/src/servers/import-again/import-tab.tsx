import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { ImportAgainPlan, ServerDetail } from '../../answers.ts';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { refusalOf } from '../../ui/actions/refusal.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { ProblemAlert } from '../../ui/states/problem-alert.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { type Source, SourceForm } from '../import/source-form.tsx';
import { useShownServer } from '../server-page.tsx';
import { Merge } from './merge.tsx';
import { OriginSection } from './origin-section.tsx';

/** Importing the description of this server again. */
export function ImportTab() {
  const detail = useShownServer();
  const canEdit = useCanEdit();
  const { document: url } = (detail.config.imported ?? {}) as { document?: string };
  return (
    <Stack gap="md">
      <OriginSection detail={detail} url={url} />
      {canEdit ? (
        <AgainFlow detail={detail} url={url} />
      ) : (
        <ViewerNote>Only editors and owners import a description again.</ViewerNote>
      )}
    </Stack>
  );
}

/** A version that importing again has stored, and the one before it. */
type Stored = { version: number; before: number };

function AgainFlow({ detail: { server }, url }: { detail: ServerDetail; url: string | undefined }) {
  const [read, setRead] = useState<{ source: Source; plan: ImportAgainPlan; at: number }>();
  const [stored, setStored] = useState<Stored>();
  const { slug } = server;
  const reading = useAction({
    run: (source: Source) => api('importAgain', { slug, ...source, mode: 'plan', offered: 'all' }),
    onDone: (plan, source) => {
      setRead({ plan, source, at: performance.now() });
      setStored(undefined);
    },
  });
  return (
    <>
      {stored && <StoredNote slug={slug} stored={stored} onUndone={() => setStored(undefined)} />}
      <SourceForm
        title="Import again"
        text="Reads the description once more: edits stay, other fields follow it. Nothing is stored until you have seen what changes."
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
          version={server.version}
          onStored={(version) => {
            setRead(undefined);
            setStored({ version, before: server.version });
          }}
        />
      )}
    </>
  );
}

type StoredProps = { slug: string; stored: Stored; onUndone: () => void };

/** Says which version was stored, and undoes it on request. */
function StoredNote({ slug, stored: { version, before }, onUndone }: StoredProps) {
  const undo = useAction({
    run: () => api('restoreVersion', { slug, version: before }, { version }),
    done: (restored) => `Version ${before} is restored as version ${restored.server.version}`,
    refresh: [queryKeys.servers],
    onDone: onUndone,
  });
  return (
    <Alert color="green" title={`Stored as version ${version}`} role="status">
      <Stack gap="sm">
        <Text size="sm">Agents get the changed tools from now on. The version before is kept.</Text>
        {undo.error && <ProblemAlert error={undo.error} title="It was not undone" />}
        <Group>
          <Button size="xs" variant="default" onClick={() => undo.mutate()} loading={undo.isPending}>
            Undo: restore version {before}
          </Button>
        </Group>
      </Stack>
    </Alert>
  );
}
