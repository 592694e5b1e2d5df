import { Box, Group, Stack, Text } from '@mantine/core';
import type { JsonObject } from '../../../answers.ts';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { isObject, type PathPart, textOf } from '../../config.ts';
import { AddButton, IconButton } from '../edit-buttons.tsx';
import { type Declared, declared, Fields, Input } from '../fields.tsx';
import { useEditor, useField, useValue } from '../model/editor-context.ts';

const mostCredentials = 4;
const secretText = 'Secret as {{NAME}}. Set its value under Secrets after the server is created.';
const required = { isRequired: true, isMono: true };
const { text, list, choice, json } = declared;

const header = text('header', 'Header', '', { placeholder: 'Authorization', isMono: true });
const queryKey = text('query_key', 'Query parameter', '', { placeholder: 'api_key', isMono: true });
const cookie = text('cookie', 'Cookie name', '', { placeholder: 'session', ...required });
const clientAuth = [
  { value: 'basic', label: 'HTTP Basic' },
  { value: 'body', label: 'Request body' },
];
const client = [
  text('token_url', 'Token endpoint', '', required),
  text('client_id', 'Client ID', '', required),
  text('client_secret', 'Client secret', secretText, required),
  choice('client_auth', 'Client authentication', 'As required by the provider.', clientAuth, {
    placeholder: 'HTTP Basic',
  }),
  list('scopes', 'Token scopes', 'Press Enter after each.'),
  text('audience', 'Audience', '', { isMono: true }),
  text('resource', 'Resource', '', { isMono: true }),
  json('extra_params', 'Extra parameters', 'Added to the token request.'),
];
const signature = [
  text('region', 'Region', '', { placeholder: 'eu-central-1', ...required }),
  text('service', 'Service', '', { placeholder: 'execute-api', ...required }),
  text('access_key_id', 'Access key ID', '', required),
  text('secret_access_key', 'Secret access key', secretText, required),
  text('session_token', 'Session token', 'Only for temporary keys.', { isMono: true }),
];
const newClient = { token_url: '', client_id: '', client_secret: '{{CLIENT_SECRET}}' };
const newKeys = { access_key_id: '{{AWS_ACCESS_KEY_ID}}', secret_access_key: '{{AWS_SECRET_ACCESS_KEY}}' };
const newSignature = { region: '', service: '', ...newKeys };

type Kind = {
  value: string;
  label: string;
  /** Field for the location in the request. */
  location?: Declared;
  /** Fields of a credential that is more than a token. */
  own?: readonly Declared[];
  /** Initial values of a new credential. */
  begin?: JsonObject;
};

/** Credential types. */
const kinds: readonly Kind[] = [
  { value: 'Bearer', label: 'Bearer – Authorization: Bearer TOKEN', location: header },
  { value: 'ApiKey', label: 'API key – plain token in a header', location: header },
  { value: 'Basic', label: 'Basic – Authorization: Basic TOKEN', location: header },
  { value: 'QueryParam', label: 'Query parameter', location: queryKey },
  { value: 'Cookie', label: 'Cookie', location: cookie, begin: { cookie: '' } },
  {
    ...{ value: 'ClientCredentials', label: 'Client credentials – a token from a token endpoint' },
    ...{ location: header, own: client, begin: newClient },
  },
  { value: 'AwsSigV4', label: 'AWS signature (Version 4)', own: signature, begin: newSignature },
];

const ownOf = (type: unknown) => kinds.find(({ value }) => value === type)?.own;

/** Returns true for a stored credential, false for the token of a caller or login. */
export function isStoredCredential(one: unknown): boolean {
  if (!isObject(one)) return false;
  return ownOf(one.type) !== undefined || ['token', 'user', 'password'].some((name) => one[name] !== undefined);
}

/** Returns how a token is sent, without the token. Falls back to Bearer for types with their own credential. */
export function withoutCredential(one: JsonObject): JsonObject {
  if (ownOf(one.type) || one.type === undefined) return { type: 'Bearer' };
  const { token: _token, user: _user, password: _password, ...rest } = one;
  return rest;
}

/** Credentials at `at` that the API receives: one, or several in different locations. */
export function CredentialList({ at, isStored }: { at: readonly PathPart[]; isStored: boolean }) {
  const { set } = useEditor();
  const authentication = useValue(at);
  const isList = Array.isArray(authentication);
  const all: unknown[] = isList ? authentication : [authentication];
  const second = { type: 'ApiKey', header: 'X-Second-Key', token: '{{SECOND_KEY}}' };
  return (
    <Stack gap="md">
      {all.map((one, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a credential has no identity but its index
        <Box key={index}>
          {all.length > 1 && (
            <Group justify="space-between" mb={4}>
              <Text size="sm" fw={600}>
                Credential {index + 1}
              </Text>
              <IconButton label={`Remove credential ${index + 1}`} onClick={() => set(at, all.toSpliced(index, 1))} />
            </Group>
          )}
          <CredentialFields path={isList ? [...at, index] : at} isStored={isStored || isStoredCredential(one)} />
        </Box>
      ))}
      {authentication !== undefined && all.length < mostCredentials && (
        <AddButton onClick={() => set(at, [...all, second])}>Add credential</AddButton>
      )}
    </Stack>
  );
}

/** Fields of one credential. */
function CredentialFields({ path, isStored }: { path: readonly PathPart[]; isStored: boolean }) {
  const { set } = useEditor();
  const type = useField([...path, 'type']);
  const value = useValue(path);
  const one = isObject(value) ? value : {};
  const choices = kinds.filter(({ own }) => isStored || !own);
  const kind = kinds.find((each) => each.value === one.type) ?? kinds[0];
  const pick = (next: unknown) =>
    set(path, ofKind(kinds.find((each) => each.value === next) ?? kinds[0], one, isStored));
  return (
    <TwoColumns from="sm">
      <Input kind="choice" edited={{ ...type, set: pick }} label="Credential type" choices={choices} isRequired />
      <Fields
        path={path}
        of={[...(kind?.location ? [kind.location] : []), ...(isStored ? secretsOf(kind, one) : [])]}
      />
    </TwoColumns>
  );
}

/** Returns the fields for stored values. Basic takes a token, or a user and password. */
function secretsOf(kind: Kind | undefined, { token, user, password }: JsonObject): readonly Declared[] {
  if (kind?.own) return kind.own;
  const isBasic = kind?.value === 'Basic';
  const isPair = user !== undefined || password !== undefined;
  const isRequired = { isRequired: isPair, isMono: true };
  const pair = [
    text('user', 'User', 'Plain text, or a secret as {{NAME}}.', isRequired),
    text('password', 'Password', secretText, isRequired),
  ];
  const single = [text('token', 'Credential', secretText, { isRequired: !isBasic, isMono: true })];
  return [...(isBasic && (isPair || !textOf(token)) ? pair : []), ...(isPair ? [] : single)];
}

/** Converts a credential to another type. Keeps shared fields and adds required ones. */
function ofKind(kind: Kind | undefined, before: JsonObject, isStored: boolean): JsonObject {
  const type = kind?.value;
  if (kind?.own) return { type, ...kind.begin };
  return {
    type,
    ...kind?.begin,
    ...(before.header !== undefined && kind?.location === header && { header: before.header }),
    ...(isStored && { token: textOf(before.token) || '{{SERVICE_KEY}}' }),
  };
}
