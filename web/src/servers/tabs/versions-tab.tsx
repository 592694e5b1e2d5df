import { Badge, Button, Group, Select, Stack, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import type { Version } from '../../answers.ts';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { Confirm } from '../../ui/actions/confirm.tsx';
import { useAction } from '../../ui/actions/use-action.ts';
import { More } from '../../ui/more.tsx';
import { type Column, Rows } from '../../ui/rows.tsx';
import { Section } from '../../ui/section.tsx';
import { Loaded } from '../../ui/states/loaded.tsx';
import { PersonName } from '../../ui/text/person-name.tsx';
import { Time } from '../../ui/text/time.tsx';
import { visible } from '../../ui/text/visible.ts';
import { useShownServer } from '../server-page.tsx';
import { VersionChanges } from '../version-changes.tsx';
import { NoteDialog } from './note-dialog.tsx';

/** The stored versions: any two compared, and an older one restored. */
export function VersionsTab() {
  const { server } = useShownServer();
  const canEdit = useCanEdit();
  const [restored, setRestored] = useState<number>();
  const [noted, setNoted] = useState<Version>();
  const [search, setSearch] = useSearchParams();
  const compare = (from: string, to: string) => setSearch({ from, to }, { replace: true, preventScrollReset: true });
  const pages = useInfiniteQuery({
    queryKey: queryKeys.versions(server.slug),
    queryFn: ({ pageParam, signal }) =>
      api('listVersions', { slug: server.slug, limit: 100, cursor: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    select: ({ pages: answers }) => answers.flatMap((page) => page.versions),
  });
  return (
    <Loaded query={pages}>
      {(versions) => {
        const to = search.get('to') ?? String(server.version);
        const from = search.get('from') ?? String(versions[1]?.version ?? to);
        const actions = {
          onCompare: (version: number) => compare(String(version), String(server.version)),
          ...(canEdit && { onRestore: setRestored, onNote: setNoted }),
        };
        return (
          <Stack gap="md">
            {versions.length > 1 && <Comparison versions={versions} from={from} to={to} onChange={compare} />}
            <Section
              title="Versions"
              text="Saving never overwrites: each change is a new version, and so is a restored one. The newest are kept."
              flush
            >
              <Rows
                label="Versions"
                columns={columnsFor(server.version, actions)}
                rows={versions}
                keyOf={({ version }) => String(version)}
              />
              <More pages={pages} isInCard>
                Show older versions
              </More>
            </Section>
            <RestoreQuestion version={restored} onClose={() => setRestored(undefined)} />
            <NoteDialog slug={server.slug} version={noted} onClose={() => setNoted(undefined)} />
          </Stack>
        );
      }}
    </Loaded>
  );
}

type ComparisonProps = {
  versions: readonly Version[];
  from: string;
  to: string;
  onChange: (from: string, to: string) => void;
};

/** Two versions, and what has changed from one to the other. */
function Comparison({ versions, from, to, onChange }: ComparisonProps) {
  const { server } = useShownServer();
  const data = versions.map(({ version, message }) => ({
    value: String(version),
    label: `Version ${version}${message === undefined ? '' : `: ${visible(message)}`}`,
  }));
  const of = (label: string, value: string, change: (value: string) => void) => ({
    label,
    data,
    value,
    onChange: (next: string | null) => next !== null && change(next),
    allowDeselect: false,
    searchable: true,
    flex: '1 1 12rem',
    maw: 360,
  });
  return (
    <Section title="Compare">
      <Stack gap="sm">
        <Group gap="sm">
          <Select {...of('From', from, (next) => onChange(next, to))} />
          <Select {...of('To', to, (next) => onChange(from, next))} />
        </Group>
        <VersionChanges slug={server.slug} from={Number(from)} to={Number(to)} />
      </Stack>
    </Section>
  );
}

type RestoreProps = { version: number | undefined; onClose: () => void };

function RestoreQuestion({ version, onClose }: RestoreProps) {
  const { server } = useShownServer();
  const restore = useAction({
    run: (old: number) => api('restoreVersion', { slug: server.slug, version: old }, { version: server.version }),
    done: (stored, old) => `Version ${old} is restored as version ${stored.server.version}`,
    refresh: [queryKeys.servers],
    onDone: onClose,
  });
  return (
    <Confirm
      opened={version !== undefined}
      title={`Restore version ${version ?? ''}?`}
      action="Restore"
      isHarmless
      isPending={restore.isPending}
      error={restore.error}
      onClose={onClose}
      onConfirm={() => version !== undefined && restore.mutate(version)}
    >
      <Text size="sm">This is what changes. Secrets stay as they are, and nothing is lost.</Text>
      {version !== undefined && <VersionChanges slug={server.slug} from={server.version} to={version} />}
    </Confirm>
  );
}

type Actions = {
  onCompare: (version: number) => void;
  onRestore?: (version: number) => void;
  onNote?: (version: Version) => void;
};

function columnsFor(current: number, { onCompare, onRestore, onNote }: Actions): Column<Version>[] {
  return [
    {
      label: 'Version',
      cell: ({ version }) => (
        <Group gap="xs" wrap="nowrap">
          <Text fw={600}>Version {version}</Text>
          {version === current && <Badge color="green">current</Badge>}
        </Group>
      ),
    },
    {
      label: 'Stored',
      cell: ({ created_at, created_by, created_by_name }) => (
        <span>
          <Time at={created_at} /> by <PersonName id={created_by} name={created_by_name} />
        </span>
      ),
    },
    { label: 'Message', cell: ({ message }) => (message === undefined ? '–' : visible(message)) },
    {
      label: 'Actions',
      quiet: true,
      end: true,
      cell: (version) => (
        <Group gap={6} justify="flex-end" wrap="nowrap">
          {onNote && <RowButton action="Note" of={version} onClick={() => onNote(version)} />}
          {version.version !== current && (
            <RowButton action="Compare" of={version} onClick={() => onCompare(version.version)} />
          )}
          {version.version !== current && onRestore && (
            <RowButton action="Restore" of={version} onClick={() => onRestore(version.version)} />
          )}
        </Group>
      ),
    },
  ];
}

function RowButton({ action, of, onClick }: { action: string; of: Version; onClick: () => void }) {
  return (
    <Button size="compact-sm" variant="default" onClick={onClick} aria-label={`${action} version ${of.version}`}>
      {action}
    </Button>
  );
}
