import { Alert, Anchor, Badge, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconAlertTriangle, IconUserKey } from '@tabler/icons-react';
import { getFieldHosts } from '@toolhost/tool-config/field-hosts';
import { useState } from 'react';
import { Link } from 'react-router';
import { api } from '../api.ts';
import type { JsonObject, OwnValues } from '../api-types.ts';
import { queryKeys } from '../query-keys.ts';
import { getFieldError, getFormErrors } from '../ui/actions/form-errors.ts';
import { RowButton } from '../ui/actions/row-button.tsx';
import { useAction } from '../ui/actions/use-action.ts';
import { useConfirmation } from '../ui/actions/use-confirmation.tsx';
import { Form } from '../ui/form.tsx';
import { type Column, Rows } from '../ui/rows.tsx';
import { SecretInput } from '../ui/secret-input.tsx';
import { Section } from '../ui/section.tsx';
import { ProblemAlert } from '../ui/states/problem-alert.tsx';
import { TextLink } from '../ui/text/text-link.tsx';
import { Time } from '../ui/text/time.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { useOperationQuery } from '../use-operation-query.ts';
import { asText, getLoginFields } from './config.ts';
import { mask } from './declared.ts';
import { formatHosts } from './format-hosts.ts';
import { useCurrentServer } from './server-page.tsx';

const useOwnValues = () => useOperationQuery(queryKeys.ownValues, 'listOwnValues', {}).data?.servers;

/** Queries that changed values affect: also the logins that end with them. */
const refresh = [queryKeys.ownValues];

/** Values of the signed-in person: a form for this server, and all servers that hold some. */
export function OwnValuesSection() {
  const { server, config } = useCurrentServer();
  const stored = useOwnValues();
  const fields = getLoginFields(config);
  if (!stored || (fields.length === 0 && stored.length === 0)) return null;
  const current = stored.find((entry) => entry.server === server.slug);
  return (
    <Section
      title="Your values"
      text="What you entered for your own calls. Values are stored encrypted and never shown again."
      isFlush
    >
      {fields.length > 0 && (
        <Stack gap="sm" px="md" pb="md">
          {config.oauth ? (
            <Text>Values belong to each login. To change them, log in again with your MCP client.</Text>
          ) : (
            <ValuesForm fields={fields} stored={current} />
          )}
        </Stack>
      )}
      {stored.length > 0 && <StoredValues stored={stored} />}
    </Section>
  );
}

type FormProps = { fields: readonly JsonObject[]; stored: OwnValues | undefined };

function ValuesForm({ fields, stored }: FormProps) {
  const { server, config } = useCurrentServer();
  const { slug } = server;
  const hosts = getFieldHosts(config);
  const [entered, setEntered] = useState<Record<string, string>>({});
  const isStored = (name: string) => stored?.provided.includes(name) === true && !stored.refused.includes(name);
  const getText = (field: JsonObject) => {
    const name = asText(field.name);
    return entered[name] ?? (isStored(name) ? '' : asText(field.default));
  };
  // A stored value stays if nothing is entered. The service rejects an empty required one.
  const values = Object.fromEntries(
    fields
      .filter((field) => getText(field) !== '' || (!isStored(asText(field.name)) && field.optional !== true))
      .map((field) => [asText(field.name), getText(field)]),
  );
  const save = useAction({
    run: (input: typeof values) => api('setOwnValues', { slug, values: input }),
    toast: () => 'Saved your values',
    refresh,
    onSuccess: () => setEntered({}),
  });
  const formErrors = getFormErrors(save, values);
  const hasValues = Object.keys(values).length > 0;
  return (
    <Form onSubmit={() => hasValues && save.mutate(values)}>
      <Stack gap="sm" maw={640}>
        {formErrors.failure && <ProblemAlert error={formErrors.failure} title="Your values were not saved" />}
        {fields.map((field) => {
          const name = asText(field.name);
          const Input = field.secret === false ? TextInput : SecretInput;
          const isRefused = stored?.refused.includes(name) === true && entered[name] === undefined;
          return (
            <Input
              key={name}
              label={`${toVisible(asText(field.label))}${field.optional === true ? ' (optional)' : ''}`}
              description={
                <>
                  {isStored(name) && 'Stored. Enter a new value to replace it. '}
                  {`Sent to ${formatHosts(hosts.get(name) ?? [], fields) || 'no host yet'}. `}
                  {field.help !== undefined && (
                    <Anchor href={asText(field.help)} target="_blank" rel="noreferrer" size="xs" underline="always">
                      Where to find it
                    </Anchor>
                  )}
                </>
              }
              placeholder={isStored(name) ? mask : ''}
              value={getText(field)}
              onChange={({ currentTarget: { value } }) => setEntered({ ...entered, [name]: value })}
              error={
                getFieldError(formErrors, `values.${name}`) ??
                (isRefused && 'The API refused the stored value. Enter a new one.')
              }
            />
          );
        })}
        <Group>
          <Button type="submit" loading={save.isPending} disabled={!hasValues}>
            Save values
          </Button>
        </Group>
      </Stack>
    </Form>
  );
}

const columns: Column<OwnValues>[] = [
  {
    label: 'Server',
    cell: ({ server, name }) => <TextLink to={`/servers/${server}/settings/logins`}>{toVisible(name)}</TextLink>,
  },
  { label: 'Values', cell: (entry) => <ProvidedNames {...entry} /> },
  { label: 'Updated', narrow: 'hidden', cell: ({ updated_at }) => <Time at={updated_at} /> },
];

/** Names of provided values, with those that the API refused. Their contents are never shown. */
export function ProvidedNames({ provided, refused = [] }: Pick<OwnValues, 'provided'> & Partial<OwnValues>) {
  return (
    <Group gap={6}>
      <Text className="th-mono" span>
        {toVisible(provided.join(', '))}
      </Text>
      {refused.length > 0 && <Badge color="yellow">{toVisible(refused.join(', '))} refused by the API</Badge>}
    </Group>
  );
}

function StoredValues({ stored }: { stored: readonly OwnValues[] }) {
  const remove = useConfirmation({
    title: ({ name }: OwnValues) => `Delete your values at ${toVisible(name)}?`,
    text: () => 'Your logins at this server end, and your API keys no longer work there.',
    action: 'Delete values',
    run: ({ server }) => api('deleteOwnValues', { slug: server }),
    toast: (_, { name }) => `Deleted your values at ${toVisible(name)}`,
    refresh,
  });
  return (
    <>
      <Rows
        label="Servers that hold your values"
        columns={columns}
        rows={stored}
        getKey={({ server }) => server}
        actions={(entry) => (
          <RowButton
            label="Delete"
            subject={`your values at ${toVisible(entry.name)}`}
            onClick={() => remove.ask(entry)}
          />
        )}
      />
      {remove.dialog}
    </>
  );
}

/** Alert with a link to the form if the signed-in person has not entered the values that calls need. */
export function MissingValuesAlert() {
  const { server, config } = useCurrentServer();
  const stored = useOwnValues();
  const current = stored?.find((entry) => entry.server === server.slug);
  const missing = getLoginFields(config).filter(({ name, optional }) => {
    const isRefused = current?.refused.includes(asText(name)) === true;
    const isProvided = current?.provided.includes(asText(name)) === true && !isRefused;
    return optional !== true && !isProvided;
  });
  if (!stored || missing.length === 0) return null;
  return (
    <Alert color="yellow" icon={<IconAlertTriangle size={18} />} title="This server needs your values">
      <Text>
        {`Calls use the values of the person who calls. Yours are missing: ${toVisible(missing.map(({ label }) => asText(label)).join(', '))}.`}
        {config.oauth !== undefined && ' Log in with an MCP client to enter them.'}
      </Text>
      {config.oauth === undefined && (
        <Button
          component={Link}
          to={`/servers/${server.slug}/settings/logins`}
          variant="default"
          mt="xs"
          leftSection={<IconUserKey size={16} />}
        >
          Enter your values
        </Button>
      )}
    </Alert>
  );
}
