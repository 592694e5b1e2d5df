import { Checkbox, MultiSelect, Select, Stack, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import type { UseMutationResult } from '@tanstack/react-query';
import type { ApiKey, KeyScope, NewApiKey } from '../answers.ts';
import { useServerChoices } from '../servers/server-queries.ts';
import { DialogForm } from '../ui/actions/confirm.tsx';
import { errorAt, refusalOf } from '../ui/actions/refusal.ts';
import { exactTime } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';

type Props = {
  replaced: ApiKey | undefined;
  creating: UseMutationResult<NewApiKey, Error, KeyValues>;
  onCancel: () => void;
};

const scopes: { value: KeyScope; label: string; description: string }[] = [
  { value: 'call', label: 'call', description: 'Call servers with a stored credential.' },
  { value: 'manage', label: 'manage', description: 'Read and change servers, keys and everything else.' },
  { value: 'manage:read', label: 'manage:read', description: 'Read all of that, and change nothing.' },
];

/** The choice to end when the replaced key would have ended. */
const asBefore = 'as-before';

/** Days until a key ends. */
const expiries = [
  { value: '', label: 'Never' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In a year' },
];

/** The fields of the form, by the names under which the service refuses them. */
export type KeyValues = { name: string; scopes: string[]; servers: string[]; views: string[]; expires: string };

const dayS = 86_400;

/** A key as the REST API takes it. Its limits are those of the key that it replaces. */
export function wantedOf({ name, scopes: chosen, servers, views, expires }: KeyValues, replaced: ApiKey | undefined) {
  return {
    name,
    scopes: chosen as KeyScope[],
    servers: servers.length > 0 ? servers : undefined,
    views: views.length > 0 ? views : undefined,
    ...(expires === asBefore
      ? { expires_at: replaced?.expires_at }
      : expires !== '' && { expires_in: Number(expires) * dayS }),
    ...replaced?.limits,
  };
}

export function KeyForm({ replaced, creating, onCancel }: Props) {
  const choices = useServerChoices();
  const ending = replaced?.expires_at;
  const form = useForm<KeyValues>({
    initialValues: {
      name: replaced?.name ?? '',
      scopes: replaced?.scopes ?? ['call'],
      servers: replaced?.servers ?? [],
      views: replaced?.views ?? [],
      expires: ending === undefined ? '' : asBefore,
    },
    validate: {
      name: (name) => (name.trim() === '' ? 'Say what the key is for.' : null),
      scopes: (chosen) => (chosen.length === 0 ? 'Choose at least one.' : null),
    },
  });
  const refusal = refusalOf(creating, form.values);
  const field = (name: keyof KeyValues) => {
    const props = form.getInputProps(name);
    return { ...props, error: props.error ?? errorAt(refusal, name) };
  };
  const kept = ending === undefined ? [] : [{ value: asBefore, label: `As before: ${exactTime(ending)}` }];
  const servers = choices.data?.map(({ slug, name }) => ({ value: slug, label: visible(name) })) ?? [];
  const listed = choices.data?.flatMap(({ slug, views: names = [] }) => names.map((name) => `${slug}/${name}`)) ?? [];
  // Those of a replaced key may be of servers beyond the first.
  const views = [...new Set([...form.values.views, ...listed])];
  return (
    <DialogForm
      action={replaced ? 'Make the new key' : 'Create key'}
      isPending={creating.isPending}
      error={refusal.failure}
      onClose={onCancel}
      onSubmit={form.onSubmit((values) => creating.mutate(values))}
    >
      <TextInput label="Name" description="What the key is for." withAsterisk data-autofocus {...field('name')} />
      <Checkbox.Group label="It may" withAsterisk {...field('scopes')} errorProps={{ role: 'alert' }}>
        <Stack gap="xs" mt={6}>
          {scopes.map((scope) => (
            <Checkbox key={scope.value} {...scope} />
          ))}
        </Stack>
      </Checkbox.Group>
      <MultiSelect
        label="Servers"
        description="All of the workspace while neither a server nor a view is named."
        data={servers}
        searchable
        clearable
        {...field('servers')}
      />
      {views.length > 0 && (
        <MultiSelect
          label="Views"
          description="Parts of servers. A key with views calls tools and manages nothing."
          data={views}
          searchable
          clearable
          {...field('views')}
        />
      )}
      <Select label="Expires" data={[...kept, ...expiries]} allowDeselect={false} {...field('expires')} />
    </DialogForm>
  );
}
