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
import { errorText } from '../field-messages.tsx';
import { declared, Fields } from '../fields.tsx';
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

const required = { isRequired: true, isMono: true };
const { text, list, choice, json, check } = declared;

const provider = [
  text('authorization_url', 'Authorization URL', '', required),
  text('token_url', 'Token URL', '', required),
  text('client_id', 'Client id', '', required),
];
const scopes = list('scopes', 'Scopes', 'Press Enter after each.');
const added = 'Added to the authorization URL, for example {"access_type": "offline"}.';
const holds = 'Where the answer of the token URL holds the token, if not at its top, for example authed_user.';
const more = [
  choice('client_auth', 'Client id and secret are sent', '', clientAuths, { placeholder: 'In the form' }),
  choice('token_mode', 'Agents hold', '', modes, { placeholder: 'A token of Toolhost' }),
  json('extra_params', 'Extra parameters', added),
  json('token_params', 'Extra fields for the token URL', 'Added to the form that goes to the token URL.'),
  text('token_path', 'Path of the token', holds, { isMono: true }),
  check('pkce', 'Use PKCE towards the provider', 'Leave it on unless the provider cannot handle it.', true),
];

/** The provider at which people log in, and the callback to register there. */
export function OAuthFields() {
  const { callbackUrl, isNew } = useEditor();
  const { base_url } = useSession();
  const isChanged = useIsChanged();
  const slug = textOf(useValue(['slug']));
  const name = textOf(useValue(['name']));
  const callback = callbackUrl ?? `${base_url}/mcp/${slug || slugFrom(name) || 'SLUG'}/callback`;
  return (
    <Stack gap="sm">
      <Alert color="accent" icon={<IconInfoCircle size={18} />} title="Register this callback URL with the provider">
        <Text size="sm" mb="xs">
          Exactly in this form; a provider compares it letter by letter.
          {isNew && ' The login can be tried once the server is stored.'}
        </Text>
        <CodeBlock code={callback} label="callback URL" />
      </Alert>
      <TwoColumns from="sm">
        <Fields path={['oauth']} of={provider} />
        <ClientSecret />
      </TwoColumns>
      <Fields path={['oauth']} of={[scopes]} />
      <Folded label="More about the login">
        <Fields path={['oauth']} of={more} />
      </Folded>
      {!isNew && <LoginCheck slug={slug} url={`${base_url}/mcp/${slug}`} isUnsaved={isChanged} />}
    </Stack>
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
