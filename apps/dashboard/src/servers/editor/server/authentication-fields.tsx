import { Box, Group, Stack, Text } from '@mantine/core';
import type { JsonObject } from '../../../api-types.ts';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { asText, isObject, type PathSegment } from '../../config.ts';
import { AddButton, IconButton } from '../edit-buttons.tsx';
import { declareField, type FieldDeclaration, Fields, Input } from '../fields.tsx';
import { useEditor, useField, useValue } from '../model/editor-context.ts';

const maxCredentials = 4;
const secretHint = 'Secret as {{NAME}}. Set its value under Secrets after the server is created.';
const required = { isRequired: true, isMono: true };
const { text, list, choice, json } = declareField;

const header = text('header', 'Header', '', { placeholder: 'Authorization', isMono: true });
const queryKey = text('query_key', 'Query parameter', '', { placeholder: 'api_key', isMono: true });
const cookie = text('cookie', 'Cookie name', '', { placeholder: 'session', ...required });
const clientAuth = [
  { value: 'basic', label: 'HTTP Basic' },
  { value: 'body', label: 'Request body' },
];
const clientFields = [
  text('token_url', 'Token endpoint', '', required),
  text('client_id', 'Client ID', '', required),
  text('client_secret', 'Client secret', secretHint, required),
  choice('client_auth', 'Client authentication', 'As required by the provider.', clientAuth, {
    placeholder: 'HTTP Basic',
  }),
  list('scopes', 'Token scopes', 'Press Enter after each.'),
  text('audience', 'Audience', '', { isMono: true }),
  text('resource', 'Resource', '', { isMono: true }),
  json('extra_params', 'Extra parameters', 'Added to the token request.'),
];
const signatureFields = [
  text('region', 'Region', '', { placeholder: 'eu-central-1', ...required }),
  text('service', 'Service', '', { placeholder: 'execute-api', ...required }),
  text('access_key_id', 'Access key ID', '', required),
  text('secret_access_key', 'Secret access key', secretHint, required),
  text('session_token', 'Session token', 'Only for temporary keys.', { isMono: true }),
];
const newClient = { token_url: '', client_id: '', client_secret: '{{CLIENT_SECRET}}' };
const newKeys = { access_key_id: '{{AWS_ACCESS_KEY_ID}}', secret_access_key: '{{AWS_SECRET_ACCESS_KEY}}' };
const newSignature = { region: '', service: '', ...newKeys };

type Kind = {
  value: string;
  label: string;
  /** Field for the location in the request. */
  location?: FieldDeclaration;
  /** Fields of a credential that is more than a token. */
  fields?: readonly FieldDeclaration[];
  /** Initial values of a new credential. */
  initial?: JsonObject;
};

const kinds: readonly Kind[] = [
  { value: 'Bearer', label: 'Bearer – Authorization: Bearer TOKEN', location: header },
  { value: 'ApiKey', label: 'API key – plain token in a header', location: header },
  { value: 'Basic', label: 'Basic – Authorization: Basic TOKEN', location: header },
  { value: 'QueryParam', label: 'Query parameter', location: queryKey },
  { value: 'Cookie', label: 'Cookie', location: cookie, initial: { cookie: '' } },
  {
    value: 'ClientCredentials',
    label: 'Client credentials – a token from a token endpoint',
    location: header,
    fields: clientFields,
    initial: newClient,
  },
  { value: 'AwsSigV4', label: 'AWS signature (Version 4)', fields: signatureFields, initial: newSignature },
];

const getFields = (type: unknown) => kinds.find(({ value }) => value === type)?.fields;

/** Returns true for a stored credential, false for the token of a caller or login. */
export function isStoredCredential(credential: unknown): boolean {
  if (!isObject(credential)) return false;
  return (
    getFields(credential.type) !== undefined ||
    ['token', 'user', 'password'].some((name) => credential[name] !== undefined)
  );
}

/** Removes the token or the user and password. A type that is more than a token becomes Bearer. */
export function removeCredential(credential: JsonObject): JsonObject {
  if (getFields(credential.type) || credential.type === undefined) return { type: 'Bearer' };
  const { token: _token, user: _user, password: _password, ...rest } = credential;
  return rest;
}

/** Credentials that the API receives: one, or several in different locations. */
export function CredentialList({ path, isStored }: { path: readonly PathSegment[]; isStored: boolean }) {
  const { set } = useEditor();
  const authentication = useValue(path);
  const isList = Array.isArray(authentication);
  const items: unknown[] = isList ? authentication : [authentication];
  const secondCredential = { type: 'ApiKey', header: 'X-Second-Key', token: '{{SECOND_KEY}}' };
  return (
    <Stack gap="md">
      {items.map((credential, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a credential has no identity but its index
        <Box key={index}>
          {items.length > 1 && (
            <Group justify="space-between" mb={4}>
              <Text fw={600}>Credential {index + 1}</Text>
              <IconButton
                label={`Remove credential ${index + 1}`}
                onClick={() => set(path, items.toSpliced(index, 1))}
              />
            </Group>
          )}
          <CredentialFields
            path={isList ? [...path, index] : path}
            isStored={isStored || isStoredCredential(credential)}
          />
        </Box>
      ))}
      {authentication !== undefined && items.length < maxCredentials && (
        <AddButton onClick={() => set(path, [...items, secondCredential])}>Add credential</AddButton>
      )}
    </Stack>
  );
}

function CredentialFields({ path, isStored }: { path: readonly PathSegment[]; isStored: boolean }) {
  const { set } = useEditor();
  const type = useField([...path, 'type']);
  const value = useValue(path);
  const credential = isObject(value) ? value : {};
  const choices = kinds.filter(({ fields }) => isStored || !fields);
  const kind = kinds.find((candidate) => candidate.value === credential.type) ?? kinds[0];
  const changeKind = (next: unknown) =>
    set(path, convertCredential(kinds.find((candidate) => candidate.value === next) ?? kinds[0], credential, isStored));
  return (
    <TwoColumns>
      <Input kind="choice" edited={{ ...type, set: changeKind }} label="Credential type" choices={choices} isRequired />
      <Fields
        path={path}
        fields={[...(kind?.location ? [kind.location] : []), ...(isStored ? getSecretFields(kind, credential) : [])]}
      />
    </TwoColumns>
  );
}

/** Returns the fields for stored values. Basic takes a token, or a user and password. */
function getSecretFields(kind: Kind | undefined, { token, user, password }: JsonObject): readonly FieldDeclaration[] {
  if (kind?.fields) return kind.fields;
  const isBasic = kind?.value === 'Basic';
  const isPair = user !== undefined || password !== undefined;
  const pairOptions = { isRequired: isPair, isMono: true };
  const pair = [
    text('user', 'User', 'Plain text, or a secret as {{NAME}}.', pairOptions),
    text('password', 'Password', secretHint, pairOptions),
  ];
  const single = [text('token', 'Credential', secretHint, { isRequired: !isBasic, isMono: true })];
  return [...(isBasic && (isPair || !asText(token)) ? pair : []), ...(isPair ? [] : single)];
}

/** Converts a credential to another type. Keeps shared fields and adds required ones. */
function convertCredential(kind: Kind | undefined, previous: JsonObject, isStored: boolean): JsonObject {
  const type = kind?.value;
  if (kind?.fields) return { type, ...kind.initial };
  return {
    type,
    ...kind?.initial,
    ...(previous.header !== undefined && kind?.location === header && { header: previous.header }),
    ...(isStored && { token: asText(previous.token) || '{{SERVICE_KEY}}' }),
  };
}
