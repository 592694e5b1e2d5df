import { TextInput } from '@mantine/core';
import { useState } from 'react';
import type { Version } from '../../answers.ts';
import { api } from '../../api.ts';
import { queryKeys } from '../../query-keys.ts';
import { Confirm } from '../../ui/actions/confirm.tsx';
import { useAction } from '../../ui/actions/use-action.ts';

type Props = { slug: string; version: Version | undefined; onClose: () => void };

/** What a version is for, in words. */
export function NoteDialog({ slug, version, onClose }: Props) {
  const [typed, setTyped] = useState<string>();
  const message = (typed ?? version?.message ?? '').trim();
  const close = () => {
    setTyped(undefined);
    onClose();
  };
  const store = useAction({
    run: (number: number) => api('noteVersion', { slug, version: number, message: message || undefined }),
    refresh: [queryKeys.versions(slug)],
    onDone: close,
  });
  return (
    <Confirm
      opened={version !== undefined}
      title={`What is version ${version?.version ?? ''} for?`}
      action="Keep the message"
      isHarmless
      isPending={store.isPending}
      error={store.error}
      onClose={close}
      onConfirm={() => version && store.mutate(version.version)}
    >
      <TextInput
        label="Message"
        value={typed ?? version?.message ?? ''}
        onChange={(event) => setTyped(event.currentTarget.value)}
        maxLength={200}
        data-autofocus
      />
    </Confirm>
  );
}
