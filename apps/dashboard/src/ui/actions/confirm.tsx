import { Button, Group, Modal, Stack, TextInput } from '@mantine/core';
import { type ComponentProps, type ReactNode, useState } from 'react';
import { Form } from '../form.tsx';
import { ProblemAlert } from '../states/problem-alert.tsx';

type ConfirmOptions = {
  action: string;
  /** Text to type before the action can run. */
  confirmText?: string;
  /** True if the action can be undone. */
  isReversible?: boolean;
  isPending?: boolean;
  error?: unknown;
  onClose: () => void;
  onConfirm: () => void;
  children: ReactNode;
};

type Props = ConfirmOptions & { opened: boolean; title: string };

/**
 * Dialog that confirms an action. It stays open while the action is pending, so that the result always belongs to it.
 */
export function Confirm({ opened, title, ...options }: Props) {
  const close = () => {
    if (!options.isPending) options.onClose();
  };
  return (
    <Modal opened={opened} onClose={close} title={title}>
      <ConfirmForm {...options} onClose={close} />
    </Modal>
  );
}

function ConfirmForm({ confirmText, error, onConfirm, children, ...rest }: ConfirmOptions) {
  const [typed, setTyped] = useState('');
  // An error from an earlier attempt is not shown again.
  const [initialError] = useState(error);
  const isReady = confirmText === undefined || typed === confirmText;
  const isMismatch = confirmText !== undefined && !confirmText.startsWith(typed);
  return (
    <DialogForm
      {...rest}
      isDangerous={!rest.isReversible}
      isReady={isReady}
      error={error !== initialError && error}
      onSubmit={() => isReady && onConfirm()}
    >
      {children}
      {confirmText !== undefined && (
        <TextInput
          label={`Type ${confirmText} to confirm`}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          error={isMismatch && `Does not match. Enter ${confirmText}.`}
          data-autofocus
        />
      )}
    </DialogForm>
  );
}

type FormProps = Pick<ConfirmOptions, 'action' | 'isPending' | 'error' | 'onClose' | 'children'> & {
  isReady?: boolean;
  isDangerous?: boolean;
  onSubmit: ComponentProps<typeof Form>['onSubmit'];
};

export function DialogForm(props: FormProps) {
  const { action, isPending = false, error, onClose, isReady = true, isDangerous = false, onSubmit, children } = props;
  return (
    <Form onSubmit={onSubmit}>
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
    </Form>
  );
}
