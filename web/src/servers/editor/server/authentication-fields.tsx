import { SimpleGrid } from '@mantine/core';
import type { JsonObject } from '../../../answers.ts';
import { isObject, type PathPart, textOf, valueAt } from '../../config.ts';
import { ChoiceField, ListField, TextField } from '../config-fields.tsx';
import { JsonField } from '../json/json-field.tsx';
import { useEditor } from '../model/editor-context.ts';

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

/** The settings by which one credential reaches the API. */
export function AuthenticationFields({ path, isStored }: { path: readonly PathPart[]; isStored: boolean }) {
  const { config, set } = useEditor();
  const at = (field: string) => [...path, field];
  const has = (field: string) => valueAt(config, at(field)) !== undefined;
  const type = valueAt(config, at('type'));
  const isPair = has('user') || has('password');
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
      <ChoiceField
        path={at('type')}
        label="The token is sent as"
        choices={isStored ? storedTypes : sentTypes}
        isRequired
        onPick={(next) => set(path, ofType(next, valueAt(config, path), isStored))}
      />
      <Location type={type} at={at} />
      {isStored && type === 'ClientCredentials' && <ClientCredentials at={at} />}
      {isStored && type === 'AwsSigV4' && <Signature at={at} />}
      {isStored && type === 'Basic' && (isPair || !textOf(valueAt(config, at('token')))) && (
        <>
          <TextField path={at('user')} label="User" isRequired={isPair} isMono />
          <TextField path={at('password')} label="Password" isRequired={isPair} isMono text={secretText} />
        </>
      )}
      {isStored && type !== 'ClientCredentials' && type !== 'AwsSigV4' && !isPair && (
        <TextField path={at('token')} label="Credential" isRequired={type !== 'Basic'} isMono text={secretText} />
      )}
    </SimpleGrid>
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

type At = { at: (field: string) => PathPart[] };

function Location({ type, at }: At & { type: unknown }) {
  if (type === 'AwsSigV4') return null;
  if (type === 'Cookie')
    return <TextField path={at('cookie')} label="Name of the cookie" placeholder="session" isRequired isMono />;
  if (type === 'QueryParam')
    return <TextField path={at('query_key')} label="Query parameter" placeholder="api_key" isMono />;
  return <TextField path={at('header')} label="Header" placeholder="Authorization" isMono />;
}

function ClientCredentials({ at }: At) {
  return (
    <>
      <TextField path={at('token_url')} label="Token endpoint" isRequired isMono />
      <TextField path={at('client_id')} label="Id of the client" isRequired isMono />
      <TextField path={at('client_secret')} label="Secret of the client" isRequired isMono text={secretText} />
      <ChoiceField
        path={at('client_auth')}
        label="The client authenticates"
        choices={clientAuthentications}
        placeholder="with HTTP Basic"
      />
      <ListField path={at('scopes')} label="Scopes of the token" text="Press Enter after each." />
      <TextField path={at('audience')} label="Audience" isMono />
      <TextField path={at('resource')} label="Resource" isMono />
      <JsonField path={at('extra_params')} label="Extra parameters" text="Added to the token request." />
    </>
  );
}

function Signature({ at }: At) {
  return (
    <>
      <TextField path={at('region')} label="Region" placeholder="eu-central-1" isRequired isMono />
      <TextField path={at('service')} label="Service" placeholder="execute-api" isRequired isMono />
      <TextField path={at('access_key_id')} label="Access key id" isRequired isMono />
      <TextField path={at('secret_access_key')} label="Secret access key" isRequired isMono text={secretText} />
      <TextField path={at('session_token')} label="Session token" isMono text="Only for temporary keys." />
    </>
  );
}
