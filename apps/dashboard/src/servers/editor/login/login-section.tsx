import { Box, Checkbox, Group, Stack, Text } from '@mantine/core';
import type { JsonObject } from '../../../api-types.ts';
import { Collapsible } from '../../../ui/collapsible.tsx';
import { Section } from '../../../ui/section.tsx';
import { toVisible } from '../../../ui/text/visible.ts';
import { asList, asText, getViews, isObject, withValue } from '../../config.ts';
import { AddButton, IconButton } from '../edit-buttons.tsx';
import { Errors, Warnings } from '../field-messages.tsx';
import { declareField, Field, Fields, Input } from '../fields.tsx';
import { useEditor, useField, useValue } from '../model/editor-context.ts';
import { isStoredCredential } from '../server/authentication-fields.tsx';
import { LoginFields } from './login-fields.tsx';
import { LoginPreview } from './login-preview.tsx';

const tokenField = { name: 'API_TOKEN', label: 'API token' };

/** Login of people: who may log in, what each person brings, and the pages that they will see. */
export function LoginSection() {
  const { set, isReadOnly } = useEditor();
  const field = useField(['login']);
  const authentication = useValue(['authentication']);
  const isOn = field.value !== undefined;
  const hasOauth = useValue(['oauth']) !== undefined;
  const hasClients = useValue(['login', 'clients']) !== undefined;
  const toggle = () => {
    const isForwarded = isObject(authentication) && !isStoredCredential(authentication) && !hasOauth;
    set(['login'], isOn ? undefined : isForwarded ? { fields: [tokenField] } : {});
    // Without a token of the caller, each person enters one.
    if (!isOn && isForwarded) set(['authentication', 'token'], `{{${tokenField.name}}}`);
  };
  return (
    <Section
      title="Login"
      text={
        hasOauth
          ? 'Rules for who may log in, and values that people enter before they continue to the provider.'
          : 'People log in with the accounts of your team. claude.ai and ChatGPT can only use servers with a login.'
      }
    >
      <Checkbox
        id={field.id}
        label={hasOauth ? 'Add rules to the login' : 'People log in'}
        checked={isOn}
        onChange={toggle}
        disabled={isReadOnly}
      />
      <Errors list={field.errors} />
      <Warnings list={field.warnings} />
      {isOn && (
        <div className="th-login">
          <Stack gap="lg" miw={0} mt="md">
            <Allow hasOauth={hasOauth} />
            <LoginFields />
            <ViewRules />
            <Collapsible label="Limit clients" isInitiallyOpen={hasClients}>
              <Fields path={['login']} fields={clientFields} />
            </Collapsible>
          </Stack>
          <LoginPreview />
        </div>
      )}
    </Section>
  );
}

const { list } = declareField;
const clientFields = [
  list(
    'clients',
    'Clients',
    'URL of the client’s metadata document, or one exact redirect URI. Press Enter after each.',
  ),
];

/** People who may log in. Without `allow`, these are the members of the workspace, except on servers with `oauth`. */
function Allow({ hasOauth }: { hasOauth: boolean }) {
  const { set, isReadOnly } = useEditor();
  const path = ['login', 'allow'];
  const field = useField(path);
  const members = useField([...path, 'members']);
  const domains = useField([...path, 'domains'], true);
  const groups = useField([...path, 'groups'], true);
  const isAbsent = field.value === undefined;
  const isChecked = isAbsent ? !hasOauth : members.value === true;
  const change = (name: string, value: unknown) => {
    const current = isAbsent && !hasOauth ? { members: true } : field.value;
    const next = withValue(current, [name], value) as JsonObject;
    set(path, hasOauth && Object.keys(next).length === 0 ? undefined : next);
  };
  return (
    <Stack gap="sm" id={field.id} tabIndex={-1}>
      <Text fw={600}>Who may log in</Text>
      <Checkbox
        id={members.id}
        label="Members of the workspace"
        description={
          hasOauth && isAbsent
            ? 'Everyone may log in whom the provider lets in. With a rule, people first sign in with your identity provider.'
            : 'One match is enough.'
        }
        checked={isChecked}
        onChange={() => change('members', isChecked ? undefined : true)}
        disabled={isReadOnly}
      />
      <Input
        kind="list"
        edited={{ ...domains, set: (value) => change('domains', value) }}
        label="Email domains"
        text="For example example.com. The address must be verified. Press Enter after each."
      />
      <Input
        kind="list"
        edited={{ ...groups, set: (value) => change('groups', value) }}
        label="Groups"
        text="Exact names from your identity provider. Press Enter after each."
      />
      <Errors list={[...field.errors, ...members.errors]} />
      <Warnings list={field.warnings} />
    </Stack>
  );
}

/** Views by group of the identity provider, in order. */
function ViewRules() {
  const { set, isReadOnly } = useEditor();
  const field = useField(['login', 'views'], true);
  const views = Object.keys(getViews({ views: useValue(['views']) }));
  const rules = asList(field.value);
  const store = (next: readonly unknown[]) => set(['login', 'views'], next.length > 0 ? next : undefined);
  if (views.length === 0 && rules.length === 0) return null;
  return (
    <Stack gap="xs" id={field.id} tabIndex={-1}>
      <Text fw={600}>Views</Text>
      <Text c="dimmed">
        The first matching group decides which tools a person gets. An empty group is everyone. Without a match, the
        login is refused.
      </Text>
      {rules.map((_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a rule has no identity but its index
        <ViewRule key={index} index={index} views={views} remove={() => store(rules.toSpliced(index, 1))} />
      ))}
      {!isReadOnly && <AddButton onClick={() => store([...rules, { view: views[0] ?? '' }])}>Add rule</AddButton>}
      <Errors list={field.errors.filter((text) => !text.startsWith('“['))} />
    </Stack>
  );
}

type ViewRuleProps = { index: number; views: readonly string[]; remove: () => void };

function ViewRule({ index, views, remove }: ViewRuleProps) {
  const path = ['login', 'views', index];
  const chosen = asText(useValue([...path, 'view']));
  const choices = [...new Set([...views, chosen])].filter(Boolean).map((value) => ({ value, label: toVisible(value) }));
  const [groupName, viewName] = [`Group of rule ${index + 1}`, `View of rule ${index + 1}`];
  return (
    <Group gap={6} align="flex-start" wrap="nowrap">
      <Box flex={1}>
        <Field kind="text" path={[...path, 'group']} label="" aria-label={groupName} placeholder="Everyone" isMono />
      </Box>
      <Box flex={1}>
        <Field kind="choice" path={[...path, 'view']} label="" aria-label={viewName} choices={choices} isRequired />
      </Box>
      <IconButton label={`Remove rule ${index + 1}`} size={36} onClick={remove} />
    </Group>
  );
}
