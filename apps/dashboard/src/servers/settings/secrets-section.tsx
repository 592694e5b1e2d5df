import { Alert, Badge, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconAlertTriangle, IconLock } from '@tabler/icons-react';
import { getPlaceholderNames } from '@toolhost/tool-config/http/placeholders';
import { parseMovedSecret } from '@toolhost/tool-config/moved-secret';
import { type FormEvent, useState } from 'react';
import { useSearchParams } from 'react-router';
import { api } from '../../api.ts';
import type { Secret } from '../../api-types.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { getFormErrors, isEqual } from '../../ui/actions/form-errors.ts';
import { RowButton } from '../../ui/actions/row-button.tsx';
import { useAction } from '../../ui/actions/use-action.ts';
import { useConfirmation } from '../../ui/actions/use-confirmation.tsx';
import { type Column, Rows } from '../../ui/rows.tsx';
import { SecretInput } from '../../ui/secret-input.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty } from '../../ui/states/empty.tsx';
import { Loaded } from '../../ui/states/loaded.tsx';
import { ProblemAlert, toSentence } from '../../ui/states/problem-alert.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { Time } from '../../ui/text/time.tsx';
import { useOperationQuery } from '../../use-operation-query.ts';
import { getPersonalNames, isObject } from '../config.ts';
import { useCurrentServer } from '../server-page.tsx';

/** Queries that a changed secret affects: also request previews and configuration verdicts. */
const refresh = [queryKeys.servers, ['preview'], ['verdict']];

const columns: Column<Secret>[] = [
  { label: 'Name', cell: ({ name }) => <Text className="th-mono">{name}</Text> },
  {
    label: 'Used by',
    cell: ({ used_by }) =>
      used_by.length > 0 ? <Text size="sm">{used_by.join(', ')}</Text> : <Badge color="gray">unused</Badge>,
  },
  {
    label: 'Sent only to',
    cell: ({ origins }) =>
      origins.length === 0
        ? 'no host yet'
        : origins.map((origin) => (
            <Text key={origin} className="th-mono" title={origin}>
              {origin}
            </Text>
          )),
  },
  { label: 'Updated', cell: ({ updated_at }) => <Time at={updated_at} /> },
];

/** Secrets of a server. Values are never shown. */
export function SecretsSection() {
  const { slug } = useCurrentServer().server;
  const canEdit = useCanEdit();
  const [name, setName] = useState(useSearchParams()[0].get('name') ?? '');
  const query = useOperationQuery(queryKeys.secrets(slug), 'listSecrets', { slug });
  const remove = useConfirmation({
    title: (secret) => `Delete secret ${secret.name}?`,
    text: () => 'Tools that use it fail until it is set again.',
    action: 'Delete secret',
    run: (secret: Secret) => api('deleteSecret', { slug, name: secret.name }),
    toast: (_, secret) => `Deleted secret ${secret.name}`,
    refresh,
  });
  const renderActions = (secret: Secret) => (
    <>
      <RowButton label="Replace" subject={secret.name} onClick={() => setName(secret.name)} />
      <RowButton label="Delete" subject={secret.name} onClick={() => remove.ask(secret)} />
    </>
  );
  return (
    <Stack gap="md">
      <ViewerNote>Only editors and owners can set secrets.</ViewerNote>
      {canEdit && <SecretForm name={name} onName={setName} />}
      <Section title="Stored secrets" text="Values are encrypted. Only their names are ever shown." isFlush>
        <Loaded query={query}>
          {({ secrets }) =>
            secrets.length === 0 ? (
              <Empty
                icon={<IconLock size={24} />}
                title="No secrets"
                text="Use {{NAME}} in a header or credential, and set its value here."
              />
            ) : (
              <Rows
                label="Secrets"
                columns={columns}
                rows={secrets}
                getKey={(secret) => secret.name}
                actions={canEdit && renderActions}
              />
            )
          }
        </Loaded>
      </Section>
      {remove.dialog}
    </Stack>
  );
}

type NameProps = { name: string; onName: (name: string) => void };

/** Sets a secret or replaces its value. */
function SecretForm({ name, onName }: NameProps) {
  const { server, config, secrets, warnings } = useCurrentServer();
  const [value, setValue] = useState('');
  const entered = { name, value };
  const saveSecret = useAction({
    run: (input: typeof entered) => api('setSecret', { slug: server.slug, ...input }),
    toast: (_, input) => `Saved secret ${input.name}`,
    refresh,
    onSuccess: (_, input) => {
      if (!isEqual(input, entered)) return;
      setValue('');
      onName('');
    },
  });
  const { problems, failure } = getFormErrors(saveSecret, entered);
  const getError = (field: keyof typeof entered) => {
    const problem = problems.find(({ path }) => path === field);
    return problem && toSentence(problem.message);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name !== '' && value !== '') saveSecret.mutate(entered);
  };
  const variables = isObject(config.variables) ? config.variables : {};
  const otherNames = new Set([...Object.keys(variables), ...getPersonalNames(config), ...secrets]);
  const missingSecrets = getPlaceholderNames(config).filter((secretName) => !otherNames.has(secretName));
  // Moved credentials of the configuration are not included, because they are set in the editor.
  const movedSecrets = warnings
    .flatMap(({ message }) => parseMovedSecret(message) ?? [])
    .filter((secretName) => /^\w+$/.test(secretName));
  return (
    <Section
      title="Set secret"
      text="The value replaces {{NAME}} in headers and credentials. It is sent only to the hosts that the tools currently call."
    >
      <form onSubmit={submit} noValidate>
        <Stack gap="sm">
          <SecretsToSet title="Not set yet" names={missingSecrets} onName={onName} />
          <SecretsToSet
            title="Set these again, because the tools now call other hosts"
            names={movedSecrets}
            onName={onName}
          />
          {failure && <ProblemAlert error={failure} />}
          <Group gap="sm" align="flex-start">
            <TextInput
              label="Secret name"
              placeholder="SERVICE_KEY"
              className="th-mono"
              flex="1 1 12rem"
              value={name}
              onChange={(event) => onName(event.currentTarget.value)}
              error={getError('name')}
              autoComplete="off"
            />
            <SecretInput
              label="Secret value"
              flex="2 1 16rem"
              value={value}
              onChange={(event) => setValue(event.currentTarget.value)}
              error={getError('value')}
              autoComplete="new-password"
            />
            <Button type="submit" loading={saveSecret.isPending} disabled={!name || !value} className="th-aligned">
              Save secret
            </Button>
          </Group>
        </Stack>
      </form>
    </Section>
  );
}

function SecretsToSet({
  title,
  names,
  onName,
}: {
  title: string;
  names: readonly string[];
  onName: NameProps['onName'];
}) {
  if (names.length === 0) return null;
  return (
    <Alert color="yellow" icon={<IconAlertTriangle size={18} />} title={title}>
      <Group gap={6}>
        {names.map((secretName) => (
          <Button
            key={secretName}
            size="compact-sm"
            variant="default"
            className="th-mono th-whole-text"
            onClick={() => onName(secretName)}
          >
            {secretName}
          </Button>
        ))}
      </Group>
    </Alert>
  );
}
