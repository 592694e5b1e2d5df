import { Button, Group, Modal, Stack, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { api } from '../api.ts';
import { basePath } from '../base-path.ts';
import { refusalOf } from '../ui/actions/refusal.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { messageOf, sentence } from '../ui/states/problem-alert.tsx';

/** Makes another workspace, and shows it. */
export function NewWorkspace({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const form = useForm({
    initialValues: { name: '' },
    validate: { name: (name) => (name.trim() === '' ? 'Give it a name.' : null) },
  });
  const create = useAction({
    run: (values: { name: string }) => api('createWorkspace', values),
    onDone: () => location.assign(`${basePath}/`),
  });
  const { problems, failure } = refusalOf(create, form.values);
  const error = problems[0] ? sentence(problems[0].message) : failure && messageOf(failure);
  return (
    <Modal opened={opened} onClose={() => create.isPending || onClose()} title="New workspace">
      <form onSubmit={form.onSubmit((values) => create.mutate(values))} noValidate>
        <Stack>
          <TextInput
            label="Name"
            description="It has servers, keys and members of its own. You can rename it later."
            data-autofocus
            autoComplete="off"
            {...form.getInputProps('name')}
            error={form.errors.name ?? error}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={create.isPending}>
              Create workspace
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
