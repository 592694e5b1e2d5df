import { Button, Group, Modal, Stack, TextInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { ProblemAlert } from '../states/problem-alert.tsx';

type Props = {
  opened: boolean;
  title: string;
  action: string;
  /** Text that has to be typed before the action can run. */
  word?: string;
  /** Whether it can be undone. */
  isHarmless?: boolean;
  isPending: boolean;
  error: unknown;
  onClose: () => void;
  onConfirm: () => void;
  children: ReactNode;
};

/** Asks before an action with consequences. A question stays until it is answered, so an answer never belongs to another one. */
export function Confirm({ opened, title, ...question }: Props) {
  const close = () => {
    if (!question.isPending) question.onClose();
  };
  return (
    <Modal opened={opened} onClose={close} title={title}>
      <Question {...question} onClose={close} />
    </Modal>
  );
}

function Question({
  action,
  word,
  isHarmless,
  isPending,
  error,
  onClose,
  onConfirm,
  children,
}: Omit<Props, 'opened' | 'title'>) {
  const [typed, setTyped] = useState('');
  // The failure of an earlier attempt is not shown again.
  const [before] = useState(error);
  const isReady = word === undefined || typed === word;
  const isOff = word !== undefined && !word.startsWith(typed);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) onConfirm();
      }}
    >
      <Stack>
        {children}
        {word !== undefined && (
          <TextInput
            label={`Type ${word} to confirm`}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            error={isOff && `This is something else; it has to be ${word}.`}
            autoComplete="off"
            data-autofocus
          />
        )}
        {error && error !== before ? <ProblemAlert error={error} /> : null}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} disabled={isPending}>
            Cancel
          </Button>
          <Button type="submit" color={isHarmless ? 'accent' : 'red.8'} loading={isPending} disabled={!isReady}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
