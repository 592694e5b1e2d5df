import { Checkbox, MultiSelect, Select, Stack, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import type { UseMutationResult } from '@tanstack/react-query';
import type { ApiKey, KeyScope, NewApiKey } from '../api-types.ts';
import { useServerChoices } from '../servers/server-queries.ts';
import { DialogForm } from '../ui/actions/confirm.tsx';
import { getFieldError, getFormErrors } from '../ui/actions/form-errors.ts';
import { formatExactTime } from '../ui/text/time.tsx';
import { toVisible } from '../ui/text/visible.ts';

type Props = {
  replaced: ApiKey | undefined;
  createMutation: UseMutationResult<NewApiKey, Error, KeyValues>;
  onCancel: () => void;
};

const scopes: { value: KeyScope; label: string; description: string }[] = [
  { value: 'call', label: 'call', description: 'Call servers that use a stored credential.' },
  { value: 'manage', label: 'manage', description: 'Read and change servers, keys, and everything else.' },
  { value: 'manage:read', label: 'manage:read', description: 'Read everything, change nothing.' },
];

/** Value of the choice that keeps the expiration time of the replaced key. */
const keepExpiry = 'as-before';

/** Days until a key expires. */
const expiries = [
  { value: '', label: 'Never' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In a year' },
];

/** Form fields, named as in the service's validation errors. */
export type KeyValues = { name: string; scopes: string[]; servers: string[]; views: string[]; expires: string };

const daySeconds = 86_400;

/** Converts the form to REST API input. A new key inherits the limits of the key that it replaces. */
export function toKeyInput({ name, scopes: selected, servers, views, expires }: KeyValues, replaced?: ApiKey) {
  return {
    name,
    scopes: selected as KeyScope[],
    servers: servers.length > 0 ? servers : undefined,
    views: views.length > 0 ? views : undefined,
    ...(expires === keepExpiry
      ? { expires_at: replaced?.expires_at }
      : expires !== '' && { expires_in: Number(expires) * daySeconds }),
    ...replaced?.limits,
  };
}

export function KeyForm({ replaced, createMutation, onCancel }: Props) {
  const choices = useServerChoices();
  const expiresAt = replaced?.expires_at;
  const form = useForm<KeyValues>({
    initialValues: {
      name: replaced?.name ?? '',
      scopes: replaced?.scopes ?? ['call'],
      servers: replaced?.servers ?? [],
      views: replaced?.views ?? [],
      expires: expiresAt === undefined ? '' : keepExpiry,
    },
    validate: {
      name: (name) => (name.trim() === '' ? 'Enter a name.' : null),
      scopes: (selected) => (selected.length === 0 ? 'Select at least one scope.' : null),
    },
  });
  const formErrors = getFormErrors(createMutation, form.values);
  const getFieldProps = (name: keyof KeyValues) => {
    const props = form.getInputProps(name);
    return { ...props, error: props.error ?? getFieldError(formErrors, name) };
  };
  const keepOptions =
    expiresAt === undefined ? [] : [{ value: keepExpiry, label: `Unchanged: ${formatExactTime(expiresAt)}` }];
  const servers = choices.map(({ slug, name }) => ({ value: slug, label: toVisible(name) }));
  const listedViews = choices.flatMap(({ slug, views: names = [] }) => names.map((name) => `${slug}/${name}`));
  // Views of a replaced key may belong to servers that are not in the list.
  const views = [...new Set([...form.values.views, ...listedViews])];
  return (
    <DialogForm
      action={replaced ? 'Create new key' : 'Create key'}
      isPending={createMutation.isPending}
      error={formErrors.failure}
      onClose={onCancel}
      onSubmit={form.onSubmit((values) => createMutation.mutate(values))}
    >
      <TextInput label="Name" data-autofocus {...getFieldProps('name')} />
      <Checkbox.Group label="Scopes" {...getFieldProps('scopes')} errorProps={{ role: 'alert' }}>
        <Stack gap="xs" mt={6}>
          {scopes.map((scope) => (
            <Checkbox key={scope.value} {...scope} />
          ))}
        </Stack>
      </Checkbox.Group>
      <MultiSelect
        label="Servers"
        placeholder={form.values.servers.length + form.values.views.length === 0 ? 'All servers' : ''}
        data={servers}
        searchable
        clearable
        {...getFieldProps('servers')}
      />
      {views.length > 0 && (
        <MultiSelect
          label="Views"
          description="A key that is limited to views can call tools but cannot manage anything."
          data={views}
          searchable
          clearable
          {...getFieldProps('views')}
        />
      )}
      <Select label="Expires" data={[...keepOptions, ...expiries]} {...getFieldProps('expires')} />
    </DialogForm>
  );
}
