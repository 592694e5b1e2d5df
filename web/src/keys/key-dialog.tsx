import { Modal } from '@mantine/core';
import { useState } from 'react';
import type { ApiKey, NewApiKey } from '../answers.ts';
import { api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { visible } from '../ui/text/visible.ts';
import { KeyForm, type KeyValues, wantedOf } from './key-form.tsx';
import { NewKey } from './new-key.tsx';

type Props = { opened: boolean; replaced: ApiKey | undefined; onClose: () => void };

/** Makes a key and shows it only once. A replaced key goes on working until its successor was copied. */
export function KeyDialog({ opened, replaced, onClose }: Props) {
  const [made, setMade] = useState<NewApiKey>();
  const create = useAction({
    run: (values: KeyValues) => api('createApiKey', wantedOf(values, replaced)),
    refresh: [queryKeys.keys],
    onDone: setMade,
  });
  const finish = useAction({
    run: () => api('revokeApiKey', { id: replaced?.id ?? '' }),
    done: () => `Revoked the old key ${visible(replaced?.name ?? '')}`,
    refresh: [queryKeys.keys],
    onDone: () => close(),
  });
  const close = () => {
    // A key that arrives after its dialog was closed would never be shown.
    if (create.isPending || finish.isPending) return;
    setMade(undefined);
    create.reset();
    finish.reset();
    onClose();
  };
  const title = made ? 'Your new API key' : replaced ? `Replace ${visible(replaced.name)}` : 'New API key';
  return (
    <Modal opened={opened} onClose={close} title={title} size="lg" closeOnClickOutside={!made}>
      {made ? (
        <NewKey
          made={made}
          onClose={close}
          onRevokeOld={replaced && (() => finish.mutate())}
          isRevoking={finish.isPending}
          failure={finish.error}
        />
      ) : (
        <KeyForm replaced={replaced} creating={create} onCancel={close} />
      )}
    </Modal>
  );
}
