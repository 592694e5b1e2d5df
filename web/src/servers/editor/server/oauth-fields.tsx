import { Alert, Stack, Text } from '@mantine/core';
import { IconInfoCircle } from '@tabler/icons-react';
import { useSession } from '../../../frame/session.ts';
import { Folded } from '../../../ui/folded.tsx';
import { SecretInput } from '../../../ui/secret-input.tsx';
import { CodeBlock } from '../../../ui/text/code-block.tsx';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { slugFrom, textOf } from '../../config.ts';
import { mask } from '../../declared.ts';
import { LoginCheck } from '../../login-check/login-check.tsx';
import { ChoiceField, ListField, SwitchField, TextField } from '../config-fields.tsx';
import { errorText } from '../field-messages.tsx';
import { JsonField } from '../json/json-field.tsx';
import { useEditor, useField, useIsChanged, useValue } from '../model/editor-context.ts';

const clientAuths = [
  { value: 'body', label: 'In the form' },
  { value: 'basic', label: 'HTTP Basic' },
  { value: 'none', label: 'Public client, without a secret' },
];

const modes = [
  { value: 'issued', label: 'A token of Toolhost (recommended)' },
  { value: 'passthrough', label: "The provider's own token" },
];

/** The provider at which people log in, and the callback to register there. */
export function OAuthFields() {
  return (
    <Stack gap="sm">
      <CallbackHint />
      <TwoColumns from="sm">
        <TextField path={['oauth', 'authorization_url']} label="Authorization URL" isRequired isMono />
        <TextField path={['oauth', 'token_url']} label="Token URL" isRequired isMono />
        <TextField path={['oauth', 'client_id']} label="Client id" isRequired isMono />
        <ClientSecret />
      </TwoColumns>
      <ListField path={['oauth', 'scopes']} label="Scopes" text="Press Enter after each." />
      <Folded label="More about the login">
        <ChoiceField
          path={['oauth', 'client_auth']}
          label="Client id and secret are sent"
          choices={clientAuths}
          placeholder="In the form"
        />
        <ChoiceField
          path={['oauth', 'token_mode']}
          label="Agents hold"
          choices={modes}
          placeholder="A token of Toolhost"
        />
        <JsonField
          path={['oauth', 'extra_params']}
          label="Extra parameters"
          text='Added to the authorization URL, for example {"access_type": "offline"}.'
        />
        <JsonField
          path={['oauth', 'token_params']}
          label="Extra fields for the token URL"
          text="Added to the form that goes to the token URL."
        />
        <TextField
          path={['oauth', 'token_path']}
          label="Path of the token"
          text="Where the answer of the token URL holds the token, if not at its top, for example authed_user."
          isMono
        />
        <SwitchField
          path={['oauth', 'pkce']}
          label="Use PKCE towards the provider"
          text="Leave it on unless the provider cannot handle it."
          fallback={true}
        />
      </Folded>
      <StoredLogin />
    </Stack>
  );
}

/** A button to try the login, once there is one. */
function StoredLogin() {
  const { isNew } = useEditor();
  const isChanged = useIsChanged();
  const { base_url } = useSession();
  const slug = textOf(useValue(['slug']));
  if (isNew) return null;
  return <LoginCheck slug={slug} url={`${base_url}/mcp/${slug}`} isUnsaved={isChanged} />;
}

function CallbackHint() {
  const { callbackUrl, isNew } = useEditor();
  const { base_url } = useSession();
  const name = textOf(useValue(['name']));
  const slug = textOf(useValue(['slug'])) || slugFrom(name) || 'SLUG';
  return (
    <Alert color="accent" icon={<IconInfoCircle size={18} />} title="Register this callback URL with the provider">
      <Text size="sm" mb="xs">
        Exactly in this form; a provider compares it letter by letter.
        {isNew && ' The login can be tried once the server is stored.'}
      </Text>
      <CodeBlock code={callbackUrl ?? `${base_url}/mcp/${slug}/callback`} label="callback URL" />
    </Alert>
  );
}

function ClientSecret() {
  const field = useField(['oauth', 'client_secret']);
  const isKept = field.value === mask;
  return (
    <SecretInput
      id={field.id}
      label="Client secret"
      withAsterisk
      description={isKept ? 'Stored. Type a new one to replace it.' : 'Stored sealed and never shown again.'}
      value={isKept ? '' : textOf(field.value)}
      placeholder={isKept ? mask : ''}
      onChange={({ currentTarget: { value } }) => field.set(value === '' ? undefined : value)}
      onBlur={field.touch}
      error={errorText(field.errors)}
      readOnly={field.isReadOnly}
      autoComplete="new-password"
    />
  );
}
