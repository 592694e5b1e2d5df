import { Alert, Button, Group, Modal, Stack, TextInput } from '@mantine/core';
import { IconAlertTriangle, IconLock, IconPlus } from '@tabler/icons-react';
import { getPlaceholderNames } from '@toolhost/tool-config/http/placeholders';
import { parseMovedSecret } from '@toolhost/tool-config/moved-secret';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { api } from '../../api.ts';
import type { Secret } from '../../api-types.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { DialogForm } from '../../ui/actions/confirm.tsx';
import { getFieldError, getFormErrors } from '../../ui/actions/form-errors.ts';
import { RowButton } from '../../ui/actions/row-button.tsx';
import { useAction } from '../../ui/actions/use-action.ts';
import { useConfirmation } from '../../ui/actions/use-confirmation.tsx';
import { type Column, Names, RowName, Rows } from '../../ui/rows.tsx';
import { SecretInput } from '../../ui/secret-input.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty } from '../../ui/states/empty.tsx';
import { Loaded } from '../../ui/states/loaded.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { Time } from '../../ui/text/time.tsx';
import { useOperationQuery } from '../../use-operation-query.ts';
import { getPersonalNames, isObject } from '../config.ts';
import { useCurrentServer } from '../server-page.tsx';

/** Queries that a changed secret affects: also request previews and configuration verdicts. */
const refresh = [queryKeys.servers, ['preview'], ['verdict']];

/** Returns the part of the configuration with a use of a secret: the tool, or the name of a field for all tools. */
const getPart = (use: string) => use.replace(/: .*|(?<=^(?:authentication|credentials|headers))[.[].*/, '');

const columns: Column<Secret>[] = [
  { label: 'Name', cell: ({ name }) => <RowName name={<span className="th-mono">{name}</span>} /> },
  {
    label: 'Used by',
    cell: ({ used_by }) => <Names list={[...new Set(used_by.map(getPart))]} empty="unused" />,
  },
  { label: 'Sent only to', cell: ({ origins }) => <Names list={origins} empty="no host yet" /> },
  { label: 'Updated', narrow: 'hidden', cell: ({ updated_at }) => <Time at={updated_at} /> },
];

/** Secrets of a server. Values are never shown. */
export function SecretsSection() {
  const { slug } = useCurrentServer().server;
  const canEdit = useCanEdit();
  // Name in the dialog; undefined while it is closed.
  const [name, setName] = useState(useSearchParams()[0].get('name') ?? undefined);
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
      {canEdit && <MissingSecrets onName={setName} />}
      <Section
        title="Secrets"
        text="A secret replaces {{NAME}} in headers and credentials. Its value is encrypted and never shown."
        actions={
          canEdit && (
            <Button leftSection={<IconPlus size={16} />} onClick={() => setName('')}>
              Set secret
            </Button>
          )
        }
        isFlush
      >
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
      <Modal opened={canEdit && name !== undefined} onClose={() => setName(undefined)} title="Set secret">
        <SecretForm name={name ?? ''} onName={setName} onClose={() => setName(undefined)} />
      </Modal>
      {remove.dialog}
    </Stack>
  );
}

type OnName = (name: string) => void;

/** Sets a secret or replaces its value. */
function SecretForm({ name, onName, onClose }: { name: string; onName: OnName; onClose: () => void }) {
  const { slug } = useCurrentServer().server;
  const [startsNamed] = useState(name !== '');
  const [value, setValue] = useState('');
  const entered = { name, value };
  const save = useAction({
    run: (input: typeof entered) => api('setSecret', { slug, ...input }),
    toast: (_, input) => `Saved secret ${input.name}`,
    refresh,
    onSuccess: onClose,
  });
  const formErrors = getFormErrors(save, entered);
  const isReady = name !== '' && value !== '';
  return (
    <DialogForm
      action="Save secret"
      isPending={save.isPending}
      isReady={isReady}
      error={formErrors.failure}
      onClose={onClose}
      onSubmit={() => isReady && save.mutate(entered)}
    >
      <TextInput
        label="Secret name"
        placeholder="SERVICE_KEY"
        className="th-mono"
        value={name}
        onChange={(event) => onName(event.currentTarget.value)}
        error={getFieldError(formErrors, 'name')}
        data-autofocus={!startsNamed || undefined}
      />
      <SecretInput
        label="Secret value"
        description="Sent only to the hosts that the tools currently call."
        value={value}
        onChange={(event) => setValue(event.currentTarget.value)}
        error={getFieldError(formErrors, 'value')}
        data-autofocus={startsNamed || undefined}
      />
    </DialogForm>
  );
}

/** Secrets that the configuration uses and that are not set, or that were set for other hosts. */
function MissingSecrets({ onName }: { onName: OnName }) {
  const { config, secrets, warnings } = useCurrentServer();
  const variables = isObject(config.variables) ? config.variables : {};
  const otherNames = new Set([...Object.keys(variables), ...getPersonalNames(config), ...secrets]);
  const missing = getPlaceholderNames(config).filter((name) => !otherNames.has(name));
  // Moved credentials of the configuration are not included, because they are set in the editor.
  const moved = warnings
    .flatMap(({ message }) => parseMovedSecret(message) ?? [])
    .filter((secretName) => /^\w+$/.test(secretName));
  return [
    { title: 'Not set yet', names: missing },
    { title: 'Set these again, because the tools now call other hosts', names: moved },
  ].map(
    ({ title, names }) =>
      names.length > 0 && (
        <Alert key={title} color="yellow" icon={<IconAlertTriangle size={18} />} title={title}>
          <Group gap={6}>
            {names.map((name) => (
              <Button
                key={name}
                size="compact-sm"
                variant="default"
                className="th-mono th-whole-text"
                onClick={() => onName(name)}
              >
                {name}
              </Button>
            ))}
          </Group>
        </Alert>
      ),
  );
}
