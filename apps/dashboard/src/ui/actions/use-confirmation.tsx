import { Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Confirm } from './confirm.tsx';
import { type Action, useAction } from './use-action.ts';

type ConfirmedAction<Subject, Output> = Omit<Action<Subject, Output>, 'toastFailure'> & {
  title: (subject: Subject) => string;
  text: (subject: Subject) => ReactNode;
  action: string;
  isReversible?: boolean;
  /** Text to type before the action can run. */
  confirmText?: string;
};

/** Confirms an action on a row. `ask` opens the dialog for a row, and `dialog` is rendered next to the list. */
export function useConfirmation<Subject, Output>({
  title,
  text,
  action,
  isReversible = false,
  confirmText,
  ...actionOptions
}: ConfirmedAction<Subject, Output>) {
  const [subject, setSubject] = useState<Subject>();
  const close = () => setSubject(undefined);
  const mutation = useAction<Subject, Output>({
    ...actionOptions,
    onSuccess: (output, input) => {
      close();
      actionOptions.onSuccess?.(output, input);
    },
  });
  const dialog = (
    <Confirm
      opened={subject !== undefined}
      title={subject === undefined ? '' : title(subject)}
      action={action}
      isReversible={isReversible}
      confirmText={confirmText}
      isPending={mutation.isPending}
      error={mutation.error}
      onClose={close}
      onConfirm={() => subject !== undefined && mutation.mutate(subject)}
    >
      {subject !== undefined && <Text component="div">{text(subject)}</Text>}
    </Confirm>
  );
  return { ask: setSubject, dialog };
}
