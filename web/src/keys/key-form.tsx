import { Button, Checkbox, Group, MultiSelect, Select, Stack, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import type { UseMutationResult } from '@tanstack/react-query';
import type { ApiKey, KeyScope, NewApiKey } from '../answers.ts';
import { useServerChoices } from '../servers/server-queries.ts';
import { refusalOf } from '../ui/actions/refusal.ts';
import { ProblemAlert, sentence } from '../ui/states/problem-alert.tsx';
import { exactTime } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';

type Props = {
  replaced: ApiKey | undefined;
  creating: UseMutationResult<NewApiKey, Error, KeyValues>;
  onCancel: () => void;
};

const scopes: { value: KeyScope; label: string; text: string }[] = [
  { value: 'call', label: 'call', text: 'Call servers with a stored credential.' },
  { value: 'manage', label: 'manage', text: 'Read and change servers, keys and everything else.' },
  { value: 'manage:read', label: 'manage:read', text: 'Read all of that, and change nothing.' },
];

const expiries = [
  { value: '', label: 'Never' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In a year' },
];

export type KeyValues = { name: string; scopes: string[]; servers: string[]; views: string[]; days: string };

const dayS = 86_400;

/** The choice to end when the replaced key would have ended. */
const asBefore = 'as-before';

/** A key as the REST API takes it. Its limits are those of the key that it replaces. */
export function wantedOf({ name, scopes: chosen, servers, views, days }: KeyValues, replaced: ApiKey | undefined) {
  return {
    name,
    scopes: chosen as KeyScope[],
    ...(servers.length > 0 && { servers }),
    ...(views.length > 0 && { views }),
    ...(days === asBefore && { expires_at: replaced?.expires_at }),
    ...(days !== '' && days !== asBefore && { expires_in: Number(days) * dayS }),
    ...replaced?.limits,
  };
}

export function KeyForm({ replaced, creating, onCancel }: Props) {
  const choices = useServerChoices();
  const form = useForm<KeyValues>({
    initialValues: {
      name: replaced?.name ?? '',
      scopes: replaced?.scopes ?? ['call'],
      servers: replaced?.servers ?? [],
      views: replaced?.views ?? [],
      days: replaced?.expires_at === undefined ? '' : asBefore,
    },
    validate: {
      name: (name) => (name.trim() === '' ? 'Say what the key is for.' : null),
      scopes: (chosen) => (chosen.length === 0 ? 'Choose at least one.' : null),
    },
  });
  const { problems, failure } = refusalOf(creating, form.values);
  const errorOf = (field: keyof KeyValues, path: string) => {
    const found = problems.find((problem) => problem.path.startsWith(path));
    return form.errors[field] ?? (found && sentence(found.message));
  };
  const kept =
    replaced?.expires_at === undefined
      ? []
      : [{ value: asBefore, label: `As before: ${exactTime(replaced.expires_at)}` }];
  const data = choices.data?.map(({ slug, name }) => ({ value: slug, label: visible(name) })) ?? [];
  const listed = choices.data?.flatMap(({ slug, views: names = [] }) => names.map((name) => `${slug}/${name}`)) ?? [];
  // Those of a replaced key may be of servers beyond the first.
  const views = [...new Set([...form.values.views, ...listed])];
  return (
    <form onSubmit={form.onSubmit((values) => creating.mutate(values))} noValidate>
      <Stack gap="md">
        <TextInput
          label="Name"
          description="What the key is for."
          withAsterisk
          data-autofocus
          {...form.getInputProps('name')}
          error={errorOf('name', 'name')}
        />
        <Checkbox.Group
          label="It may"
          withAsterisk
          {...form.getInputProps('scopes')}
          error={errorOf('scopes', 'scopes')}
          errorProps={{ role: 'alert' }}
        >
          <Stack gap="xs" mt={6}>
            {scopes.map(({ value, label, text }) => (
              <Checkbox key={value} value={value} label={label} description={text} />
            ))}
          </Stack>
        </Checkbox.Group>
        <MultiSelect
          label="Servers"
          description="All of the workspace while neither a server nor a view is named."
          data={data}
          searchable
          clearable
          {...form.getInputProps('servers')}
          error={errorOf('servers', 'servers')}
        />
        {views.length > 0 && (
          <MultiSelect
            label="Views"
            description="Parts of servers. A key with views calls tools and manages nothing."
            data={views}
            searchable
            clearable
            {...form.getInputProps('views')}
            error={errorOf('views', 'views')}
          />
        )}
        <Select
          label="Expires"
          data={[...kept, ...expiries]}
          allowDeselect={false}
          {...form.getInputProps('days')}
          error={errorOf('days', 'expires_at')}
        />
        {failure && <ProblemAlert error={failure} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
          <Button type="submit" loading={creating.isPending}>
            {replaced ? 'Make the new key' : 'Create key'}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
