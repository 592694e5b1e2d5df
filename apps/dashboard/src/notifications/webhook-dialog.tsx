import { Button, Group, Modal, Stack, Switch, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import type { UseMutationResult } from '@tanstack/react-query';
import { notificationEventNames } from '@toolhost/server/notification-events';
import { api } from '../api.ts';
import type { NewWebhook, NotificationEvent, Webhook } from '../api-types.ts';
import { queryKeys } from '../query-keys.ts';
import { DialogForm } from '../ui/actions/confirm.tsx';
import { getFieldError, getFormErrors } from '../ui/actions/form-errors.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { ShownOnce } from '../ui/shown-once.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { EventChoice } from './event-choice.tsx';

type Values = { url: string; events: NotificationEvent[]; isOn: boolean };
type Props = { edited: Webhook | 'new' | undefined; onClose: () => void };

/** Creates or changes a webhook. A new secret is shown only once. */
export function WebhookDialog({ edited, onClose }: Props) {
  const saveWebhook = useAction({
    run: async ({ url, events, isOn }: Values): Promise<NewWebhook | undefined> => {
      if (edited === undefined || edited === 'new') return api('createWebhook', { url, events });
      const { secret, ...webhook } = await api('updateWebhook', {
        id: edited.id,
        url: url || undefined,
        events,
        paused: !isOn,
      });
      return secret === undefined ? undefined : { ...webhook, secret };
    },
    refresh: [queryKeys.webhooks],
    onSuccess: (savedWebhook) => savedWebhook || onClose(),
  });
  const close = () => {
    // The dialog stays open while the webhook is being saved. A secret could not be shown later.
    if (saveWebhook.isPending) return;
    saveWebhook.reset();
    onClose();
  };
  const newSecret = saveWebhook.data;
  const formTitle = edited === 'new' ? 'New webhook' : 'Edit webhook';
  const title = newSecret ? 'Webhook secret' : formTitle;
  return (
    <Modal opened={edited !== undefined} onClose={close} title={title} closeOnClickOutside={!newSecret}>
      {newSecret ? (
        <NewSecret savedWebhook={newSecret} onClose={close} />
      ) : (
        <WebhookForm webhook={edited === 'new' ? undefined : edited} saveMutation={saveWebhook} onClose={close} />
      )}
    </Modal>
  );
}

type FormProps = {
  /** Webhook to edit; undefined for a new one. */
  webhook: Webhook | undefined;
  saveMutation: UseMutationResult<unknown, Error, Values>;
  onClose: () => void;
};

function WebhookForm({ webhook, saveMutation, onClose }: FormProps) {
  const form = useForm<Values>({
    initialValues: {
      url: '',
      events: webhook?.events ?? [...notificationEventNames],
      isOn: webhook?.paused_at === undefined,
    },
    validate: {
      url: (url) => (webhook === undefined && url.trim() === '' ? 'Enter a URL.' : null),
      events: (events) => (events.length === 0 ? 'Select at least one event.' : null),
    },
  });
  const formErrors = getFormErrors(saveMutation, form.values);
  return (
    <DialogForm
      action={webhook ? 'Save webhook' : 'Create webhook'}
      isPending={saveMutation.isPending}
      error={formErrors.failure}
      onClose={onClose}
      onSubmit={form.onSubmit((values) => saveMutation.mutate(values))}
    >
      <TextInput
        label="URL"
        description={
          webhook
            ? `Leave empty to keep ${toVisible(webhook.origin)}/…. If the scheme, host, or port changes, the webhook gets a new secret.`
            : 'Receives the POST requests. Only its host is shown later.'
        }
        placeholder="https://hooks.example.com/toolhost"
        type="url"
        data-autofocus
        {...form.getInputProps('url')}
        error={form.errors.url ?? getFieldError(formErrors, 'url')}
      />
      <EventChoice label="Events" {...form.getInputProps('events')} />
      {webhook && (
        <Switch
          label="Enabled"
          description="Events that occur while it is disabled are not sent later."
          {...form.getInputProps('isOn', { type: 'checkbox' })}
        />
      )}
    </DialogForm>
  );
}

function NewSecret({ savedWebhook, onClose }: { savedWebhook: NewWebhook; onClose: () => void }) {
  const test = useTest();
  return (
    <Stack gap="sm">
      <ShownOnce code={savedWebhook.secret} label="webhook secret" />
      <Text>
        The receiver uses it to verify the webhook-signature header, as defined by Standard Webhooks. Its libraries
        accept the secret exactly as shown.
      </Text>
      <Group justify="flex-end" mt="sm">
        <Button variant="default" loading={test.isPending} onClick={() => test.mutate(savedWebhook)}>
          Send test
        </Button>
        <Button onClick={onClose}>Done</Button>
      </Group>
    </Stack>
  );
}

/** Sends a test event to a webhook, and shows the outcome as a toast. */
export function useTest() {
  return useAction({
    run: async ({ id }: Pick<Webhook, 'id' | 'origin'>) => {
      const { delivered, error } = await api('testWebhook', { id });
      if (!delivered) throw new Error(`the test was not delivered: ${error}`);
    },
    toast: (_, { origin }) => `Delivered to ${toVisible(origin)}`,
    toastFailure: true,
  });
}
