import { Box, Group, Stack, Text } from '@mantine/core';
import { getPlaceholderNames } from '@toolhost/tool-config/http/placeholders';
import type { JsonObject } from '../../../api-types.ts';
import { Collapsible } from '../../../ui/collapsible.tsx';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { asList, asText, type Config, getPersonalNames, isObject } from '../../config.ts';
import { AddButton, IconButton, MoveButtons } from '../edit-buttons.tsx';
import { Errors } from '../field-messages.tsx';
import { declareField, Fields } from '../fields.tsx';
import { getFieldId, useEditor, useEditorState, useField, useMessages, useValue } from '../model/editor-context.ts';

const maxFields = 10;

const { text, number, check } = declareField;
const mainFields = [
  text('label', 'Label', 'Shown to people.', { placeholder: 'Personal access token', isRequired: true }),
  text('name', 'Name', 'Replaces {{NAME}} in the configuration.', {
    placeholder: 'API_TOKEN',
    isRequired: true,
    isMono: true,
  }),
];
const helpField = text('help', 'Help page', 'https URL that explains where people find the value.', {
  placeholder: 'https://example.com/docs/tokens',
  isMono: true,
});
const checks = [
  check('secret', 'Secret', 'Entered like a password and never shown again.', true),
  check('optional', 'Optional', 'People may leave it empty.'),
];
const defaultField = text('default', 'Default', 'Already entered when the form opens.', { isMono: true });
const ruleFields = [
  text('pattern', 'Pattern', 'Regular expression for the whole value.', { placeholder: '[a-z0-9-]+', isMono: true }),
  number('max_length', 'Max length', 'Characters. 4,096 by default.'),
];

/** Returns the secrets that the configuration sends with every call and that people could bring instead. */
function findSharedSecrets(config: Config): string[] {
  const { authentication, headers, base_url, variables } = config;
  const taken = new Set([...Object.keys(isObject(variables) ? variables : {}), ...getPersonalNames(config)]);
  return getPlaceholderNames([authentication, headers, base_url]).filter((name) => !taken.has(name));
}

/** Values that each person brings: fields of a form, in order. */
export function LoginFields() {
  const { set } = useEditor();
  const path = ['login', 'fields'];
  const fields = asList(useValue(path));
  const { errors } = useMessages(path);
  const sharedSecrets = useEditorState(({ config }) => findSharedSecrets(config));
  const store = (next: readonly unknown[]) => set(path, next.length > 0 ? next : undefined);
  const add = (field: JsonObject) => store([...fields, field]);
  const move = (from: number, to: number) => {
    store(fields.toSpliced(from, 1).toSpliced(to, 0, fields[from]));
    document.getElementById(getFieldId(`login.fields[${to}]`))?.focus();
  };
  const isFull = fields.length >= maxFields;
  return (
    <Stack gap="xs" id={getFieldId('login.fields')} tabIndex={-1}>
      <Text fw={600}>What each person brings</Text>
      <Text c="dimmed">
        {fields.length === 0
          ? 'Nothing. The API gets the stored credential for everyone.'
          : 'People enter these values once, when their agent connects. Only their own calls use them.'}
      </Text>
      {fields.map((_, index) => (
        <LoginField
          // biome-ignore lint/suspicious/noArrayIndexKey: a field has no identity but its index
          key={index}
          index={index}
          count={fields.length}
          move={move}
          remove={() => store(fields.toSpliced(index, 1))}
        />
      ))}
      {!isFull &&
        sharedSecrets.slice(0, 3).map((name) => (
          <AddButton key={name} onClick={() => add({ name, label: toLabel(name) })}>
            {`Each person brings ${name}`}
          </AddButton>
        ))}
      {!isFull && <AddButton onClick={() => add({ name: '', label: '' })}>Add field</AddButton>}
      <Errors list={errors} />
    </Stack>
  );
}

/** Returns a label for a name: `JIRA_TOKEN` → `Jira token`. */
function toLabel(name: string): string {
  const words = name.replaceAll('_', ' ').trim().toLowerCase();
  return (words.charAt(0).toUpperCase() + words.slice(1)).slice(0, 60);
}

type Props = { index: number; count: number; move: (from: number, to: number) => void; remove: () => void };

function LoginField({ index, count, move, remove }: Props) {
  const path = ['login', 'fields', index];
  const field = useField(path);
  const value = isObject(field.value) ? field.value : {};
  const title = asText(value.label) || asText(value.name) || `Field ${index + 1}`;
  const hasDefault = value.secret === false || value.default !== undefined;
  const hasRules = value.pattern !== undefined || value.max_length !== undefined;
  return (
    <Box component="fieldset" className="th-nested" m={0} id={field.id} tabIndex={-1} aria-label={`Field ${title}`}>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text fw={500} truncate>
          {title}
        </Text>
        <Group gap={0} wrap="nowrap">
          <MoveButtons label={title} index={index} count={count} move={move} />
          <IconButton label={`Remove ${title}`} onClick={remove} />
        </Group>
      </Group>
      <Stack gap="sm">
        <TwoColumns>
          <Fields path={path} fields={mainFields} />
        </TwoColumns>
        <Fields path={path} fields={[helpField]} />
        <TwoColumns>
          <Fields path={path} fields={checks} />
        </TwoColumns>
        {hasDefault && <Fields path={path} fields={[defaultField]} />}
        <Collapsible label="Validation" isInitiallyOpen={hasRules}>
          <TwoColumns>
            <Fields path={path} fields={ruleFields} />
          </TwoColumns>
        </Collapsible>
        <Errors list={field.errors} />
      </Stack>
    </Box>
  );
}
