import { Badge, Group, Select, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { api } from '../../api.ts';
import type { Version } from '../../api-types.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { RowButton } from '../../ui/actions/row-button.tsx';
import { selectsText } from '../../ui/actions/selects-text.ts';
import { useConfirmation } from '../../ui/actions/use-confirmation.tsx';
import { PagedList } from '../../ui/paged-list.tsx';
import { type Column, Dash, RowName, Rows } from '../../ui/rows.tsx';
import { Section } from '../../ui/section.tsx';
import { PersonName } from '../../ui/text/person-name.tsx';
import { Time } from '../../ui/text/time.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { usePages } from '../../use-operation-query.ts';
import { VersionChanges } from '../change-list.tsx';
import { useCurrentServer } from '../server-page.tsx';

const createColumns = (current: number): Column<Version>[] => [
  {
    label: 'Version',
    cell: ({ version }) => (
      <RowName
        name={
          <>
            <span>Version {version}</span> {version === current && <Badge>Current</Badge>}
          </>
        }
      />
    ),
  },
  {
    label: 'Saved',
    cell: ({ created_at, created_by, created_by_name }) => (
      <span>
        <Time at={created_at} /> by <PersonName id={created_by} name={created_by_name} />
      </span>
    ),
  },
  { label: 'Message', cell: ({ message }) => (message === undefined ? <Dash /> : toVisible(message)) },
];

export function VersionsSection() {
  const { slug, version: current } = useCurrentServer().server;
  const canEdit = useCanEdit();
  const note = useMessageDialog(slug);
  const [search, setSearch] = useSearchParams();
  const compare = (from: string, to: string) => setSearch({ from, to }, { replace: true });
  const pages = usePages(queryKeys.versions(slug), 'listVersions', { slug, limit: 100 });
  const restore = useConfirmation({
    title: (version: number) => `Restore version ${version}?`,
    text: (version) => (
      <Stack>
        Restoring makes these changes. Secrets are not affected, and no version is lost.
        <VersionChanges slug={slug} from={current} to={version} />
      </Stack>
    ),
    action: 'Restore',
    isReversible: true,
    run: (version) => api('restoreVersion', { slug, version }, { version: current }),
    toast: ({ server }, version) => `Restored version ${version} as version ${server.version}`,
    refresh: [queryKeys.servers],
  });
  const renderActions = (row: Version) => {
    const { version } = row;
    const rowLabel = `version ${version}`;
    return (
      <>
        {canEdit && <RowButton label="Note" subject={rowLabel} onClick={() => note.ask(row)} />}
        {version !== current && (
          <RowButton label="Compare" subject={rowLabel} onClick={() => compare(String(version), String(current))} />
        )}
        {version !== current && canEdit && (
          <RowButton label="Restore" subject={rowLabel} onClick={() => restore.ask(version)} />
        )}
      </>
    );
  };
  const from = search.get('from');
  const to = search.get('to') ?? String(current);
  const versions = pages.data?.pages.flatMap((page) => page.versions);
  return (
    <Stack gap="md">
      {from !== null && versions && <Comparison versions={versions} from={from} to={to} onChange={compare} />}
      <Section title="Versions" isFlush>
        <PagedList pages={pages} getRows={(page) => page.versions} nextPageLabel="Show older versions" isInCard>
          {(rows) => (
            <Rows
              label="Versions"
              columns={createColumns(current)}
              rows={rows}
              getKey={({ version }) => String(version)}
              actions={renderActions}
            />
          )}
        </PagedList>
      </Section>
      {restore.dialog}
      {note.dialog}
    </Stack>
  );
}

type ComparisonProps = {
  versions: readonly Version[];
  from: string;
  to: string;
  onChange: (from: string, to: string) => void;
};

function Comparison({ versions, from, to, onChange }: ComparisonProps) {
  const { slug } = useCurrentServer().server;
  const data = versions.map(({ version, message }) => ({
    value: String(version),
    label: `Version ${version}${message === undefined ? '' : `: ${toVisible(message)}`}`,
  }));
  const getSelectProps = (label: string, value: string, change: (value: string) => void) => ({
    label,
    data,
    value,
    onChange: (next: string | null) => next !== null && change(next),
    searchable: true,
    ...selectsText,
    flex: '1 1 12rem',
    maw: 360,
  });
  return (
    <Section title="Compare">
      <Stack gap="sm">
        <Group gap="sm">
          <Select {...getSelectProps('From', from, (next) => onChange(next, to))} />
          <Select {...getSelectProps('To', to, (next) => onChange(from, next))} />
        </Group>
        <VersionChanges slug={slug} from={Number(from)} to={Number(to)} />
      </Stack>
    </Section>
  );
}

function useMessageDialog(slug: string) {
  const [message, setMessage] = useState('');
  const { ask, dialog } = useConfirmation({
    title: ({ version }) => `Message for version ${version}`,
    text: () => (
      <TextInput
        label="Message"
        value={message}
        onChange={(event) => setMessage(event.currentTarget.value)}
        maxLength={200}
        data-autofocus
      />
    ),
    action: 'Save message',
    isReversible: true,
    run: ({ version }: Version) => api('updateVersion', { slug, version, message: message.trim() || undefined }),
    refresh: [queryKeys.versions(slug)],
  });
  const open = (version: Version) => {
    setMessage(version.message ?? '');
    ask(version);
  };
  return { ask: open, dialog };
}
