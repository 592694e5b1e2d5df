import { Alert, Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { IconEyeOff } from '@tabler/icons-react';
import { useState } from 'react';
import { noticeEventNames } from '../../../src/domain/notices.ts';
import type { NewWebhook, NoticeEvent } from '../answers.ts';
import { api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { refusalOf } from '../ui/actions/refusal.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { ProblemAlert, sentence } from '../ui/states/problem-alert.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { EventChoice } from './event-choice.tsx';
import { useTest } from './use-test.ts';

type Values = { url: string; events: NoticeEvent[] };
type Props = { opened: boolean; onClose: () => void };

/** Makes a webhook, and shows its secret only once. */
export function WebhookDialog({ opened, onClose }: Props) {
  const [made, setMade] = useState<NewWebhook>();
  const form = useForm<Values>({
    initialValues: { url: '', events: [...noticeEventNames] },
    validate: {
      url: (url) => (url.trim() === '' ? 'Say where to send it.' : null),
      events: (events) => (events.length === 0 ? 'Choose at least one.' : null),
    },
  });
  const create = useAction({
    run: (values: Values) => api('createWebhook', values),
    refresh: [queryKeys.webhooks],
    onDone: setMade,
  });
  const close = () => {
    // A secret that arrives after its dialog was closed would never be shown.
    if (create.isPending) return;
    setMade(undefined);
    form.reset();
    create.reset();
    onClose();
  };
  const { problems, failure } = refusalOf(create, form.values);
  const refused = problems.find(({ path }) => path === 'url');
  return (
    <Modal
      opened={opened}
      onClose={close}
      title={made ? 'The secret of the webhook' : 'New webhook'}
      size="lg"
      closeOnClickOutside={!made}
    >
      {made ? (
        <NewSecret made={made} onClose={close} />
      ) : (
        <form onSubmit={form.onSubmit((values) => create.mutate(values))} noValidate>
          <Stack gap="md">
            <TextInput
              label="Address"
              description="Where to POST to. Only its host is shown later."
              placeholder="https://hooks.example.com/toolhost"
              type="url"
              withAsterisk
              data-autofocus
              autoComplete="off"
              {...form.getInputProps('url')}
              error={form.errors.url ?? (refused && sentence(refused.message))}
            />
            <EventChoice label="Told of" withAsterisk {...form.getInputProps('events')} />
            {failure && <ProblemAlert error={failure} />}
            <Group justify="flex-end">
              <Button variant="default" onClick={close}>
                Cancel
              </Button>
              <Button type="submit" loading={create.isPending}>
                Create webhook
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Modal>
  );
}

function NewSecret({ made, onClose }: { made: NewWebhook; onClose: () => void }) {
  const test = useTest();
  return (
    <Stack gap="sm">
      <Alert color="yellow" icon={<IconEyeOff size={18} />} title="Copy it now">
        It cannot be shown again.
      </Alert>
      <CodeBlock code={made.secret} label="secret of the webhook" />
      <Text size="sm">
        The receiver checks the header webhook-signature with it, as Standard Webhooks says; its libraries take this
        text as it is.
      </Text>
      <Group justify="flex-end" mt="sm">
        <Button variant="default" loading={test.isPending} onClick={() => test.mutate(made)}>
          Send a test
        </Button>
        <Button onClick={onClose}>I have copied it</Button>
      </Group>
    </Stack>
  );
}
