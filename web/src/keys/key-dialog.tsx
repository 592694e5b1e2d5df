import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { claudeCodeCommand } from '../../../src/domain/clients/client.ts';
import type { ApiKey, NewApiKey } from '../answers.ts';
import { api } from '../api.ts';
import { useSession } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { ShownOnce } from '../ui/shown-once.tsx';
import { ProblemAlert } from '../ui/states/problem-alert.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { visible } from '../ui/text/visible.ts';
import { KeyForm, type KeyValues, wantedOf } from './key-form.tsx';

type Props = {
  /** 'new', or the key to replace; undefined while the dialog is closed. */
  made: ApiKey | 'new' | undefined;
  onClose: () => void;
};

/** Dialog that creates a key and shows it only once. A replaced key works until the new one has been copied. */
export function KeyDialog({ made: wanted, onClose }: Props) {
  const replaced = wanted === 'new' ? undefined : wanted;
  const create = useAction({
    run: (values: KeyValues) => api('createApiKey', wantedOf(values, replaced)),
    refresh: [queryKeys.keys],
  });
  const made = create.data;
  const close = () => {
    // The dialog stays open while the key is being created. The key could not be shown later.
    if (create.isPending) return;
    create.reset();
    onClose();
  };
  const title = made ? 'Your new API key' : replaced ? `Replace ${visible(replaced.name)}` : 'New API key';
  return (
    <Modal opened={wanted !== undefined} onClose={close} title={title} size="lg" closeOnClickOutside={!made}>
      {made ? (
        <NewKey made={made} replaced={replaced} onClose={close} />
      ) : (
        <KeyForm replaced={replaced} creating={create} onCancel={close} />
      )}
    </Modal>
  );
}

type NewKeyProps = { made: NewApiKey; replaced: ApiKey | undefined; onClose: () => void };

/** New key and how to use it. */
function NewKey({ made, replaced, onClose }: NewKeyProps) {
  const { base_url, management_url } = useSession();
  const revoke = useAction({
    run: ({ id }: ApiKey) => api('revokeApiKey', { id }),
    done: (_, { name }) => `Revoked the old key ${visible(name)}`,
    refresh: [queryKeys.keys],
    onDone: onClose,
  });
  const isManaging = made.scopes.some((scope) => scope !== 'call');
  const address = made.servers?.[0] ?? made.views?.[0];
  const slug = address ?? 'SLUG';
  const place = isManaging
    ? { name: 'toolhost', url: management_url }
    : { name: slug.replace('/', '-'), url: `${base_url}/mcp/${slug}` };
  const curl = `curl -s ${base_url}/api/v1/servers -H 'Authorization: Bearer ${made.key}'`;
  return (
    <Stack gap="sm">
      <ShownOnce code={made.key} label="API key" />
      <Text size="sm">With an agent{isManaging || address ? '' : ' (replace SLUG with the server slug)'}:</Text>
      <CodeBlock code={claudeCodeCommand({ ...place, token: made.key })} label="command for Claude Code" />
      {isManaging && (
        <>
          <Text size="sm">With the REST API or the command line:</Text>
          <CodeBlock code={curl} label="request with curl" />
        </>
      )}
      {replaced && <Text size="sm">Revoking the old key also revokes keys created with it.</Text>}
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
