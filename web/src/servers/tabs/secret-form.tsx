import { Alert, Button, Group, Stack, TextInput } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { type FormEvent, useState } from 'react';
import { api } from '../../api.ts';
import { queryKeys } from '../../query-keys.ts';
import { isSame, refusalOf } from '../../ui/actions/refusal.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { SecretInput } from '../../ui/secret-input.tsx';
import { Section } from '../../ui/section.tsx';
import { ProblemAlert, sentence } from '../../ui/states/problem-alert.tsx';

type Props = {
  slug: string;
  missing: readonly string[];
  /** Those that were set before the tools called the hosts that they call now. */
  moved: readonly string[];
  name: string;
  onName: (name: string) => void;
};

type Typed = { name: string; value: string };

/** Sets a secret or replaces its value. */
export function SecretForm({ slug, missing, moved, name, onName }: Props) {
  const [value, setValue] = useState('');
  const typed: Typed = { name, value };
  const store = useAction({
    run: (sent: Typed) => api('setSecret', { slug, name: sent.name, value: sent.value }),
    done: (_, sent) => `Stored the secret ${sent.name}`,
    refresh: [queryKeys.servers, ['preview']],
    onDone: (_, sent) => {
      if (!isSame(sent, typed)) return;
      setAsked(false);
      setValue('');
      onName('');
    },
  });
  const [isAsked, setAsked] = useState(false);
  const { problems, failure } = refusalOf(store, typed);
  const errorOf = (field: keyof Typed, missing: string) => {
    if (isAsked && typed[field] === '') return missing;
    const found = problems.find(({ path }) => path === field);
    return found && sentence(found.message);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setAsked(true);
    if (name !== '' && value !== '') store.mutate(typed);
  };
  return (
    <Section
      title="Set a secret"
      text="The value fills {{NAME}} in headers and credentials, and goes only to the hosts that the tools call now."
    >
      <form onSubmit={submit} noValidate>
        <Stack gap="sm">
          <ToSet title="Not set yet" names={missing} onName={onName} />
          <ToSet title="Set these again: the tools call other hosts by now" names={moved} onName={onName} />
          {failure && <ProblemAlert error={failure} />}
          <Group gap="sm" align="flex-start">
            <TextInput
              label="Secret name"
              placeholder="SERVICE_KEY"
              className="th-mono"
              flex="1 1 12rem"
              value={name}
              onChange={(event) => onName(event.currentTarget.value)}
              error={errorOf('name', 'Say which secret, for example SERVICE_KEY.')}
              autoComplete="off"
              withAsterisk
            />
            <SecretInput
              label="Secret value"
              flex="2 1 16rem"
              value={value}
              onChange={(event) => setValue(event.currentTarget.value)}
              error={errorOf('value', 'Type or paste the value.')}
              autoComplete="new-password"
              withAsterisk
            />
            <Button type="submit" loading={store.isPending} className="th-beside">
              Store secret
            </Button>
          </Group>
        </Stack>
      </form>
    </Section>
  );
}

type ToSetProps = { title: string; names: readonly string[]; onName: (name: string) => void };

function ToSet({ title, names, onName }: ToSetProps) {
  if (names.length === 0) return null;
  return (
    <Alert color="yellow" icon={<IconAlertTriangle size={18} />} title={title}>
      <Group gap={6}>
        {names.map((wanted) => (
          <Button
            key={wanted}
            size="compact-sm"
            variant="default"
            className="th-mono th-whole-text"
            onClick={() => onName(wanted)}
          >
            {wanted}
          </Button>
        ))}
      </Group>
    </Alert>
  );
}
