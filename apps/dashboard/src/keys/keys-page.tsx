import { Badge, Button, Group } from '@mantine/core';
import { IconKey, IconPlus } from '@tabler/icons-react';
import { useState } from 'react';
import { api } from '../api.ts';
import type { ApiKey } from '../api-types.ts';
import { useCanEdit } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { RowButton } from '../ui/actions/row-button.tsx';
import { useConfirmation } from '../ui/actions/use-confirmation.tsx';
import { SearchInput } from '../ui/debounced-input.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { PagedList } from '../ui/paged-list.tsx';
import { type Column, Names, RowName, Rows, SecondLine } from '../ui/rows.tsx';
import { Empty } from '../ui/states/empty.tsx';
import { ViewerNote } from '../ui/states/viewer-note.tsx';
import { Time } from '../ui/text/time.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { useUrlState } from '../ui/use-url-state.ts';
import { usePages } from '../use-operation-query.ts';
import { KeyDialog } from './key-dialog.tsx';

function hasEnded({ revoked_at, expires_at }: ApiKey): boolean {
  return revoked_at !== undefined || (expires_at !== undefined && Date.parse(expires_at) <= Date.now());
}

const columns: Column<ApiKey>[] = [
  {
    label: 'Key',
    cell: (key) => (
      <RowName name={toVisible(key.name)}>
        <span className="th-mono" data-narrow="hidden">
          {key.id}
        </span>
        {key.creator_left && !hasEnded(key) && (
          <span> Created by {toVisible(key.created_by_name ?? key.created_by)}, who has left the workspace.</span>
        )}
      </RowName>
    ),
  },
  {
    label: 'Scopes',
    cell: ({ scopes }) => (
      <Group gap={4} wrap="nowrap">
        {scopes.map((scope) => (
          <Badge key={scope}>{scope}</Badge>
        ))}
      </Group>
    ),
  },
  {
    label: 'Servers',
    narrow: 'hidden',
    cell: ({ servers = [], views = [] }) => <Names list={[...servers, ...views]} empty="All servers" />,
  },
  {
    label: 'Last used',
    narrow: 'labeled',
    cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} isToMinute /> : 'Never'),
  },
  { label: 'Status', narrow: 'end', cell: (key) => <Status apiKey={key} /> },
];

function Status({ apiKey }: { apiKey: ApiKey }) {
  const { revoked_at, expires_at } = apiKey;
  const at = revoked_at ?? expires_at;
  return (
    <>
      {hasEnded(apiKey) ? <span className="th-ended">{revoked_at ? 'Revoked' : 'Expired'}</span> : 'Active'}
      {at && (
        <SecondLine>
          {!revoked_at && !hasEnded(apiKey) && 'expires '}
          <Time at={at} />
        </SecondLine>
      )}
    </>
  );
}

export function KeysPage() {
  const canEdit = useCanEdit();
  const { get, set } = useUrlState();
  const query = get('query');
  const [dialogTarget, setDialogTarget] = useState<ApiKey | 'new' | undefined>(
    location.search === '?new' ? 'new' : undefined,
  );
  const revoke = useConfirmation({
    title: ({ name }: ApiKey) => `Revoke ${toVisible(name)}?`,
    text: () =>
      'Clients that use it are rejected within 2 seconds. Keys created with it are also revoked. This cannot be undone.',
    action: 'Revoke key',
    run: ({ id }) => api('revokeApiKey', { id }),
    toast: (_, { name }) => `Revoked ${toVisible(name)}`,
    refresh: [queryKeys.keys],
  });
  const pages = usePages([...queryKeys.keys, 'pages', query], 'listApiKeys', { query, limit: 50 });
  const isEmpty = query === undefined && pages.data?.pages[0]?.keys.length === 0;
  const createButton = canEdit && (
    <Button leftSection={<IconPlus size={16} stroke={1.5} />} onClick={() => setDialogTarget('new')}>
      New API key
    </Button>
  );
  const renderActions = (key: ApiKey) => {
    const name = toVisible(key.name);
    const isChangeable = canEdit && !hasEnded(key);
    return (
      <>
        <RowButton label="Calls" subject={`of ${name}`} to={`/calls?key=${key.id}`} />
        {key.scopes.some((scope) => scope !== 'call') && (
          <RowButton label="Changes" subject={`by ${name}`} to={`/audit?who=${key.id}`} />
        )}
        {isChangeable && <RowButton label="Replace" subject={name} onClick={() => setDialogTarget(key)} />}
        {isChangeable && <RowButton label="Revoke" subject={name} onClick={() => revoke.ask(key)} />}
      </>
    );
  };
  const empty = isEmpty
    ? { title: 'No API keys yet', text: 'A key is shown once, when it is created. Only its hash is stored.' }
    : { title: 'No matching keys', text: 'No key has this name or ID.' };
  return (
    <>
      <PageHeader
        title="API keys"
        guide="docs/credentials.md"
        text="For clients of servers with a stored credential, and for scripts and agents that manage servers."
      >
        {!isEmpty && createButton}
      </PageHeader>
      <ViewerNote>Only editors and owners can create or revoke keys.</ViewerNote>
      {!isEmpty && (
        <SearchInput
          mb="md"
          aria-label="Search keys by name or ID"
          placeholder="Name or ID"
          value={query ?? ''}
          onChange={(value) => set('query', value)}
        />
      )}
      <PagedList pages={pages} getRows={(page) => page.keys} nextPageLabel="Show more keys">
        {(keys) =>
          keys.length > 0 ? (
            <Rows label="API keys" columns={columns} rows={keys} getKey={({ id }) => id} actions={renderActions} />
          ) : (
            <Empty icon={<IconKey size={24} />} {...empty}>
              {isEmpty && createButton}
            </Empty>
          )
        }
      </PagedList>
      <KeyDialog target={dialogTarget} onClose={() => setDialogTarget(undefined)} />
      {revoke.dialog}
    </>
  );
}
