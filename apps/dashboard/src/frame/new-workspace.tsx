import { Modal, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { api } from '../api.ts';
import { basePath } from '../base-path.ts';
import { DialogForm } from '../ui/actions/confirm.tsx';
import { getFormErrorText } from '../ui/actions/form-errors.ts';
import { useAction } from '../ui/actions/use-action.ts';

export function NewWorkspace({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const form = useForm({
    initialValues: { name: '' },
    validate: { name: (name) => (name.trim() === '' ? 'Enter a name.' : null) },
  });
  const create = useAction({
    run: (values: { name: string }) => api('createWorkspace', values),
    onSuccess: () => location.assign(`${basePath}/`),
  });
  return (
    <Modal opened={opened} onClose={() => create.isPending || onClose()} title="New workspace">
      <DialogForm
        action="Create workspace"
        isPending={create.isPending}
        onClose={onClose}
        onSubmit={form.onSubmit((values) => create.mutate(values))}
      >
        <TextInput
          label="Name"
          description="A workspace has its own servers, keys, and members. You can rename it later."
          data-autofocus
          {...form.getInputProps('name')}
          error={form.errors.name ?? getFormErrorText(create, form.values)}
        />
      </DialogForm>
    </Modal>
  );
}
