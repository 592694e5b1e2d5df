import { Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Confirm } from './confirm.tsx';
import { type Action, useAction } from './use-action.ts';

type Question<Subject, Output> = Omit<Action<Subject, Output>, 'toastFailure'> & {
  title: (subject: Subject) => string;
  text: (subject: Subject) => ReactNode;
  action: string;
  isHarmless?: boolean;
  /** Text to type before the action can run. */
  word?: string;
};

/** Confirmation before an action on a row. `ask` opens it, and `dialog` is rendered next to the list. */
export function useQuestion<Subject, Output>({
  title,
  text,
  action,
  isHarmless = false,
  word,
  ...done
}: Question<Subject, Output>) {
  const [subject, ask] = useState<Subject>();
  const close = () => ask(undefined);
  const doing = useAction<Subject, Output>({
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
      isHarmless={isHarmless}
      word={word}
      isPending={doing.isPending}
      error={doing.error}
      onClose={close}
      onConfirm={() => subject !== undefined && doing.mutate(subject)}
    >
      {subject !== undefined && (
        <Text size="sm" component="div">
          {text(subject)}
        </Text>
      )}
    </Confirm>
  );
  return { ask, dialog };
}
