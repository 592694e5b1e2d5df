import { Input, Stack } from '@mantine/core';
import { useSession } from '../../../frame/session.ts';
import { Collapsible } from '../../../ui/collapsible.tsx';
import { SecretInput } from '../../../ui/secret-input.tsx';
import { CodeBlock } from '../../../ui/text/code-block.tsx';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { asText, toSlug } from '../../config.ts';
import { mask } from '../../declared.ts';
import { LoginCheck } from '../../login-check/login-check.tsx';
import { formatErrors } from '../field-messages.tsx';
import { declareField, Fields } from '../fields.tsx';
import { useEditor, useField, useIsChanged, useValue } from '../model/editor-context.ts';

const clientAuths = [
  { value: 'body', label: 'Request body' },
  { value: 'basic', label: 'HTTP Basic' },
  { value: 'none', label: 'Public client (no secret)' },
];

const modes = [
  { value: 'issued', label: 'Toolhost token (recommended)' },
  { value: 'passthrough', label: 'Provider token' },
];

const tokenRequests = [
  { value: 'form', label: 'Form (standard)' },
  { value: 'json', label: 'JSON' },
];

const required = { isRequired: true, isMono: true };
const { text, list, choice, json, check } = declareField;

const urlFields = [
  text('authorization_url', 'Authorization URL', '', required),
  text('token_url', 'Token URL', '', required),
];
const clientId = text('client_id', 'Client ID', '', required);
const scopes = list('scopes', 'Scopes', 'Press Enter after each.');
const extraParamsHint = 'Added to the authorization URL, for example {"access_type": "offline"}.';
const tokenPathHint = 'Location of the token in the token response, if not at the top level, for example authed_user.';
const tokenFieldsHint = 'Only if the provider names fields differently, for example {"client_id": "appid"}.';
const advancedFields = [
  choice('client_auth', 'Client authentication', '', clientAuths, { placeholder: 'Request body' }),
  choice('token_mode', 'Token for agents', '', modes, { placeholder: 'Toolhost token' }),
  choice('token_request', 'Token request', '', tokenRequests, { placeholder: 'Form' }),
  text('refresh_url', 'Refresh URL', 'Only if tokens are refreshed at another URL of the same host.', { isMono: true }),
  json('token_fields', 'Names of token fields', tokenFieldsHint),
  json('extra_params', 'Extra parameters', extraParamsHint),
  json('token_params', 'Extra token parameters', 'Added to the token request.'),
  text('token_path', 'Token path', tokenPathHint, { isMono: true }),
  check('pkce', 'Use PKCE with the provider', 'Leave on unless the provider does not support it.', true),
];

/** OAuth provider at which people log in, and the callback URL to register there. */
export function OAuthFields() {
  const { callbackUrl, isNew } = useEditor();
  const { base_url } = useSession();
  const isChanged = useIsChanged();
  const slug = asText(useValue(['slug']));
  const name = asText(useValue(['name']));
  const callback = callbackUrl ?? `${base_url}/mcp/${slug || toSlug(name) || 'SLUG'}/callback`;
  return (
    <Stack gap="sm">
      <Input.Wrapper
        label="Callback URL"
        labelElement="div"
        description={`Register it with the provider exactly as shown.${isNew ? ' You can test the login after the server is created.' : ''}`}
      >
        <CodeBlock code={callback} label="callback URL" />
      </Input.Wrapper>
      <Fields path={['oauth']} fields={urlFields} />
      <TwoColumns>
        <Fields path={['oauth']} fields={[clientId]} />
        <ClientSecret />
      </TwoColumns>
      <Fields path={['oauth']} fields={[scopes]} />
      <Collapsible label="Advanced login settings">
        <Fields path={['oauth']} fields={advancedFields} />
      </Collapsible>
      {!isNew && <LoginCheck slug={slug} url={`${base_url}/mcp/${slug}`} isUnsaved={isChanged} />}
    </Stack>
  );
}

function ClientSecret() {
  const field = useField(['oauth', 'client_secret']);
  const isStored = field.value === mask;
  return (
    <SecretInput
      id={field.id}
      label="Client secret"
      required
      description={isStored ? 'Stored. Enter a new value to replace it.' : 'Stored encrypted and never shown again.'}
      value={isStored ? '' : asText(field.value)}
      placeholder={isStored ? mask : ''}
      onChange={({ currentTarget: { value } }) => field.set(value === '' ? undefined : value)}
      onBlur={field.touch}
      error={formatErrors(field.errors)}
      readOnly={field.isReadOnly}
    />
  );
}
