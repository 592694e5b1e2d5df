import type { JsonObject } from '../../../answers.ts';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { isObject, type PathPart, textOf, valueAt } from '../../config.ts';
import { ChoiceField, TextField } from '../config-fields.tsx';
import { type DeclaredField, DeclaredFields } from '../declared-fields.tsx';
import { useEditor, useValue } from '../model/editor-context.ts';

const sentTypes = [
  { value: 'Bearer', label: 'Bearer – Authorization: Bearer TOKEN' },
  { value: 'ApiKey', label: 'API key – the token as it is, in a header' },
  { value: 'Basic', label: 'Basic – Authorization: Basic TOKEN' },
  { value: 'QueryParam', label: 'Query parameter' },
  { value: 'Cookie', label: 'Cookie' },
];

const storedTypes = [
  ...sentTypes,
  { value: 'ClientCredentials', label: 'Client credentials – a token from a token endpoint' },
  { value: 'AwsSigV4', label: 'AWS signature (Version 4)' },
];

const clientAuthentications = [
  { value: 'basic', label: 'with HTTP Basic' },
  { value: 'body', label: 'in the body' },
];

const secretText = '{{NAME}} of a secret. Its value is set under Secrets once the server exists.';

const clientFields: readonly DeclaredField[] = [
  { kind: 'text', at: 'token_url', label: 'Token endpoint', isRequired: true, isMono: true },
  { kind: 'text', at: 'client_id', label: 'Id of the client', isRequired: true, isMono: true },
  {
    kind: 'text',
    at: 'client_secret',
    label: 'Secret of the client',
    isRequired: true,
    isMono: true,
    text: secretText,
  },
  {
    kind: 'choice',
    at: 'client_auth',
    label: 'The client authenticates',
    choices: clientAuthentications,
    placeholder: 'with HTTP Basic',
  },
  { kind: 'list', at: 'scopes', label: 'Scopes of the token', text: 'Press Enter after each.' },
  { kind: 'text', at: 'audience', label: 'Audience', isMono: true },
  { kind: 'text', at: 'resource', label: 'Resource', isMono: true },
  { kind: 'json', at: 'extra_params', label: 'Extra parameters', text: 'Added to the token request.' },
];

const signatureFields: readonly DeclaredField[] = [
  { kind: 'text', at: 'region', label: 'Region', placeholder: 'eu-central-1', isRequired: true, isMono: true },
  { kind: 'text', at: 'service', label: 'Service', placeholder: 'execute-api', isRequired: true, isMono: true },
  { kind: 'text', at: 'access_key_id', label: 'Access key id', isRequired: true, isMono: true },
  {
    kind: 'text',
    at: 'secret_access_key',
    label: 'Secret access key',
    isRequired: true,
    isMono: true,
    text: secretText,
  },
  { kind: 'text', at: 'session_token', label: 'Session token', isMono: true, text: 'Only for temporary keys.' },
];

/** The settings by which one credential reaches the API. */
export function AuthenticationFields({ path, isStored }: { path: readonly PathPart[]; isStored: boolean }) {
  const { set } = useEditor();
  const one = useValue(path);
  const at = (field: string) => [...path, field];
  const has = (field: string) => valueAt(one, [field]) !== undefined;
  const type = valueAt(one, ['type']);
  const isPair = has('user') || has('password');
  return (
    <TwoColumns from="sm">
      <ChoiceField
        path={at('type')}
        label="The token is sent as"
        choices={isStored ? storedTypes : sentTypes}
        isRequired
        onPick={(next) => set(path, ofType(next, one, isStored))}
      />
      <Location type={type} at={at} />
      {isStored && type === 'ClientCredentials' && <DeclaredFields path={path} fields={clientFields} />}
      {isStored && type === 'AwsSigV4' && <DeclaredFields path={path} fields={signatureFields} />}
      {isStored && type === 'Basic' && (isPair || !textOf(valueAt(one, ['token']))) && (
        <>
          <TextField path={at('user')} label="User" isRequired={isPair} isMono />
          <TextField path={at('password')} label="Password" isRequired={isPair} isMono text={secretText} />
        </>
      )}
      {isStored && type !== 'ClientCredentials' && type !== 'AwsSigV4' && !isPair && (
        <TextField path={at('token')} label="Credential" isRequired={type !== 'Basic'} isMono text={secretText} />
      )}
    </TwoColumns>
  );
}

/** A credential of another type: with the fields that both types have, and those that the new one needs. */
function ofType(type: string | undefined, before: unknown, isStored: boolean): JsonObject {
  const { header, token } = isObject(before) ? before : {};
  if (type === 'ClientCredentials') return { type, token_url: '', client_id: '', client_secret: '{{CLIENT_SECRET}}' };
  if (type === 'AwsSigV4') {
    const keys = { access_key_id: '{{AWS_ACCESS_KEY_ID}}', secret_access_key: '{{AWS_SECRET_ACCESS_KEY}}' };
    return { type, region: '', service: '', ...keys };
  }
  return {
    type,
    ...(type === 'Cookie' && { cookie: '' }),
    ...(header !== undefined && type !== 'QueryParam' && type !== 'Cookie' && { header }),
    ...(isStored && { token: textOf(token) || '{{SERVICE_KEY}}' }),
  };
}

function Location({ type, at }: { type: unknown; at: (field: string) => PathPart[] }) {
  if (type === 'AwsSigV4') return null;
  if (type === 'Cookie')
    return <TextField path={at('cookie')} label="Name of the cookie" placeholder="session" isRequired isMono />;
  if (type === 'QueryParam')
    return <TextField path={at('query_key')} label="Query parameter" placeholder="api_key" isMono />;
  return <TextField path={at('header')} label="Header" placeholder="Authorization" isMono />;
}
