import { Button, Group, Modal, Stack, TextInput } from '@mantine/core';
import { type FormEvent, type ReactNode, useState } from 'react';
import { ProblemAlert } from '../states/problem-alert.tsx';

type Question = {
  action: string;
  /** Text to type before the action can run. */
  word?: string;
  /** True if the action can be undone. */
  isHarmless?: boolean;
  isPending: boolean;
  error: unknown;
  onClose: () => void;
  onConfirm: () => void;
  children: ReactNode;
};

type Props = Question & { opened: boolean; title: string };

/**
 * Dialog that confirms an action. It stays open while the action is pending, so that the result always belongs to it.
 */
export function Confirm({ opened, title, ...question }: Props) {
  const close = () => {
    if (!question.isPending) question.onClose();
  };
  return (
    <Modal opened={opened} onClose={close} title={title}>
      <Asked {...question} onClose={close} />
    </Modal>
  );
}

function Asked({ word, error, onConfirm, children, ...rest }: Question) {
  const [typed, setTyped] = useState('');
  // An error from an earlier attempt is not shown again.
  const [before] = useState(error);
  const isReady = word === undefined || typed === word;
  const isOff = word !== undefined && !word.startsWith(typed);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady) onConfirm();
  };
  return (
    <DialogForm
      {...rest}
      isDangerous={!rest.isHarmless}
      isReady={isReady}
      error={error !== before && error}
      onSubmit={submit}
    >
      {children}
      {word !== undefined && (
        <TextInput
          label={`Type ${word} to confirm`}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          error={isOff && `Does not match. Enter ${word}.`}
          autoComplete="off"
          data-autofocus
        />
      )}
    </DialogForm>
  );
}

type FormProps = Pick<Question, 'action' | 'isPending' | 'onClose' | 'children'> & {
  error?: unknown;
  isReady?: boolean;
  isDangerous?: boolean;
  onSubmit: (event: FormEvent<HTMLFormElement>) => void;
};

/** Form of a dialog, with Cancel and one action. */
export function DialogForm(props: FormProps) {
  const { action, isPending, error, onClose, isReady = true, isDangerous = false, onSubmit, children } = props;
  return (
    <form onSubmit={onSubmit} noValidate>
      <Stack>
        {children}
        {error ? <ProblemAlert error={error} /> : null}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} disabled={isPending}>
            Cancel
          </Button>
          <Button type="submit" color={isDangerous ? 'red.8' : 'accent'} loading={isPending} disabled={!isReady}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
