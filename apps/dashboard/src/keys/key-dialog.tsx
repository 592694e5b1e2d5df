import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { getClaudeCodeCommand } from '@toolhost/mcp-clients/client';
import { api } from '../api.ts';
import type { ApiKey, NewApiKey } from '../api-types.ts';
import { useSession } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { ShownOnce } from '../ui/shown-once.tsx';
import { ProblemAlert } from '../ui/states/problem-alert.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { KeyForm, type KeyValues, toKeyInput } from './key-form.tsx';

type Props = {
  /** 'new', or the key to replace; undefined while the dialog is closed. */
  target: ApiKey | 'new' | undefined;
  onClose: () => void;
};

/** Dialog that creates a key and shows it only once. A replaced key works until it is revoked. */
export function KeyDialog({ target, onClose }: Props) {
  const replaced = target === 'new' ? undefined : target;
  const create = useAction({
    run: (values: KeyValues) => api('createApiKey', toKeyInput(values, replaced)),
    refresh: [queryKeys.keys],
  });
  const createdKey = create.data;
  const close = () => {
    // The dialog stays open while the key is being created. The key could not be shown later.
    if (create.isPending) return;
    create.reset();
    onClose();
  };
  const formTitle = replaced ? `Replace ${toVisible(replaced.name)}` : 'New API key';
  const title = createdKey ? 'Your new API key' : formTitle;
  return (
    <Modal opened={target !== undefined} onClose={close} title={title} closeOnClickOutside={!createdKey}>
      {createdKey ? (
        <NewKey createdKey={createdKey} replaced={replaced} onClose={close} />
      ) : (
        <KeyForm replaced={replaced} createMutation={create} onCancel={close} />
      )}
    </Modal>
  );
}

type NewKeyProps = { createdKey: NewApiKey; replaced: ApiKey | undefined; onClose: () => void };

function NewKey({ createdKey, replaced, onClose }: NewKeyProps) {
  const { base_url, management_url } = useSession();
  const revoke = useAction({
    run: ({ id }: ApiKey) => api('revokeApiKey', { id }),
    toast: (_, { name }) => `Revoked the old key ${toVisible(name)}`,
    refresh: [queryKeys.keys],
    onSuccess: onClose,
  });
  const isManaging = createdKey.scopes.some((scope) => scope !== 'call');
  // Slug, or slug and view.
  const knownPath = createdKey.servers?.[0] ?? createdKey.views?.[0];
  const mcpPath = knownPath ?? 'SLUG';
  const client = isManaging
    ? { name: 'toolhost', url: management_url }
    : { name: mcpPath.replace('/', '-'), url: `${base_url}/mcp/${mcpPath}` };
  const curl = `curl -s ${base_url}/api/v1/servers -H 'Authorization: Bearer ${createdKey.key}'`;
  return (
    <Stack gap="sm">
      <ShownOnce code={createdKey.key} label="API key" />
      <Text>With an agent{isManaging || knownPath ? '' : ' (replace SLUG with the server slug)'}:</Text>
      <CodeBlock code={getClaudeCodeCommand({ ...client, token: createdKey.key })} label="command for Claude Code" />
      {isManaging && (
        <>
          <Text>With the REST API or the command line:</Text>
          <CodeBlock code={curl} label="request with curl" />
        </>
      )}
      {replaced && <Text>Revoking the old key also revokes keys created with it.</Text>}
      {revoke.error && <ProblemAlert error={revoke.error} />}
      <Group justify="flex-end" mt="sm">
        <Button {...(replaced && { variant: 'default' })} onClick={onClose}>
          {replaced ? 'Keep both for now' : 'Done'}
        </Button>
        {replaced && (
          <Button onClick={() => revoke.mutate(replaced)} loading={revoke.isPending}>
            Revoke old key
          </Button>
        )}
      </Group>
    </Stack>
  );
}
