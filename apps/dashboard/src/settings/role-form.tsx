import { Button, Group, Select, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import type { Role } from '../api-types.ts';
import { getFormErrorText, isEqual } from '../ui/actions/form-errors.ts';
import { type Action, useAction } from '../ui/actions/use-action.ts';
import { Hint } from '../ui/text/hint.tsx';

export const roleOptions: { value: Role; label: string }[] = [
  { value: 'owner', label: 'Owner' },
  { value: 'editor', label: 'Editor' },
  { value: 'viewer', label: 'Viewer' },
];

export const formatRole = (role: Role) => roleOptions.find(({ value }) => value === role)?.label;

type Values = { name: string; role: Role };
type Props = Pick<Action<Values, unknown>, 'run' | 'toast' | 'refresh'> & {
  type?: 'email';
  label: string;
  roleLabel: string;
  placeholder: string;
  action: string;
  hint: string;
};

/** Form below a list that gives a role to a person or a group. */
export function RoleForm({ type, label, roleLabel, placeholder, action, hint, ...actionOptions }: Props) {
  const form = useForm<Values>({ initialValues: { name: '', role: 'editor' } });
  const add = useAction({
    ...actionOptions,
    onSuccess: (_: unknown, input: Values) => isEqual(input, form.getValues()) && form.reset(),
  });
  return (
    <form
      onSubmit={form.onSubmit((values) => add.mutate(values))}
      noValidate
      style={{ borderTop: '1px solid var(--th-line)' }}
    >
      <Group gap="sm" p="md" align="flex-start">
        <TextInput
          type={type}
          label={label}
          placeholder={placeholder}
          flex="1 1 14rem"
          maw={360}
          {...form.getInputProps('name')}
          error={getFormErrorText(add, form.values)}
        />
        <Group gap="sm" wrap="nowrap" align="flex-end">
          <Select label={roleLabel} data={roleOptions} w={140} {...form.getInputProps('role')} />
          <Button type="submit" variant="default" loading={add.isPending}>
            {action}
          </Button>
        </Group>
      </Group>
      <Hint px="md" pb="md">
        {hint}
      </Hint>
    </form>
  );
}
