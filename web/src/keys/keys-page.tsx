import { Button, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconKey, IconPlus } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { ApiKey } from '../answers.ts';
import { api } from '../api.ts';
import { useCanEdit } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { Confirm } from '../ui/actions/confirm.tsx';
import { useAction } from '../ui/actions/use-action.ts';
import { SearchInput } from '../ui/late-input.tsx';
import { More } from '../ui/more.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { Empty } from '../ui/states/empty.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { ViewerNote } from '../ui/states/viewer-note.tsx';
import { visible } from '../ui/text/visible.ts';
import { useAddress } from '../ui/use-address.ts';
import { KeyDialog } from './key-dialog.tsx';
import { KeyList } from './key-list.tsx';

export function KeysPage() {
  const canEdit = useCanEdit();
  const { get, set } = useAddress();
  const query = get('query');
  const [isOpen, dialog] = useDisclosure(location.search === '?new');
  const [replaced, setReplaced] = useState<ApiKey>();
  const [revoked, setRevoked] = useState<ApiKey>();
  const pages = useInfiniteQuery({
    queryKey: [...queryKeys.keys, 'pages', query],
    queryFn: ({ pageParam, signal }) => api('listApiKeys', { query, limit: 50, cursor: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
  });
  const isWithout = query === undefined && pages.data?.pages[0]?.keys.length === 0;
  const create = (
    <Button leftSection={<IconPlus size={16} />} onClick={dialog.open}>
      New API key
    </Button>
  );
  const replace = (key: ApiKey) => {
    setReplaced(key);
    dialog.open();
  };
  const close = () => {
    dialog.close();
    setReplaced(undefined);
  };
  return (
    <>
      <PageHeader
        title="API keys"
        guide="docs/credentials.md"
        text="For clients of servers with a stored credential, for scripts and for agents that manage servers."
      >
        {canEdit && !isWithout && create}
      </PageHeader>
      <ViewerNote>Only editors and owners make or revoke keys.</ViewerNote>
      {!isWithout && (
        <SearchInput
          mb="md"
          aria-label="Words in names, or the id of a key"
          placeholder="Name or id"
          value={query ?? ''}
          onChange={(value) => set('query', value)}
        />
      )}
      <Loaded query={pages}>
        {({ pages: answers }) => {
          const keys = answers.flatMap((page) => page.keys);
          return (
            <Stack>
              <div className="th-card">
                {keys.length === 0 && query !== undefined ? (
                  <Empty icon={<IconKey size={24} />} title="No key has these words" text="Nor is it the id of one." />
                ) : keys.length === 0 ? (
                  <Empty
                    icon={<IconKey size={24} />}
                    title="No API keys yet"
                    text="A key is shown once, when it is made; only its hash is stored."
                  >
                    {canEdit && create}
                  </Empty>
                ) : (
                  <KeyList
                    keys={keys}
                    onRevoke={canEdit ? setRevoked : undefined}
                    onReplace={canEdit ? replace : undefined}
                  />
                )}
              </div>
              <More pages={pages}>Show more keys</More>
            </Stack>
          );
        }}
      </Loaded>
      <KeyDialog opened={isOpen} replaced={replaced} onClose={close} />
      <RevokeDialog apiKey={revoked} onClose={() => setRevoked(undefined)} />
    </>
  );
}

type Props = { apiKey: ApiKey | undefined; onClose: () => void };

function RevokeDialog({ apiKey, onClose }: Props) {
  const revoke = useAction({
    run: (key: ApiKey) => api('revokeApiKey', { id: key.id }),
    done: (_, key) => `Revoked ${visible(key.name)}`,
    refresh: [queryKeys.keys],
    onDone: onClose,
  });
  return (
    <Confirm
      opened={apiKey !== undefined}
      title={`Revoke ${visible(apiKey?.name ?? '')}?`}
      action="Revoke key"
      isPending={revoke.isPending}
      error={revoke.error}
      onClose={onClose}
      onConfirm={() => apiKey && revoke.mutate(apiKey)}
    >
      <Text size="sm">
        Whatever uses it is refused within two seconds. A revoked key cannot be used again. Keys that were made with it
        are revoked too.
      </Text>
    </Confirm>
  );
}
