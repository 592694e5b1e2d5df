import { Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Confirm } from './confirm.tsx';
import { type Action, useAction } from './use-action.ts';

type ConfirmedAction<Subject, Output> = Omit<Action<Subject, Output>, 'toastFailure'> & {
  title: (subject: Subject) => string;
  text: (subject: Subject) => ReactNode;
  action: string;
  isHarmless?: boolean;
  /** Text to type before the action can run. */
  confirmText?: string;
};

/** Confirmation before an action on a row. `ask` opens it, and `dialog` is rendered next to the list. */
export function useConfirmation<Subject, Output>({
  title,
  text,
  action,
  isHarmless = false,
  confirmText,
  ...done
}: ConfirmedAction<Subject, Output>) {
  const [subject, open] = useState<Subject>();
  const close = () => open(undefined);
  const mutation = useAction<Subject, Output>({
    ...done,
    onDone: (output, input) => {
      close();
      done.onDone?.(output, input);
    },
  });
  const dialog = (
    <Confirm
      opened={subject !== undefined}
      title={subject === undefined ? '' : title(subject)}
      action={action}
      isReversible={isHarmless}
      confirmText={confirmText}
      isPending={mutation.isPending}
      error={mutation.error}
      onClose={close}
      onConfirm={() => subject !== undefined && mutation.mutate(subject)}
    >
      {subject !== undefined && (
        <Text size="sm" component="div">
          {text(subject)}
        </Text>
      )}
    </Confirm>
  );
  return { ask: open, dialog };
}
