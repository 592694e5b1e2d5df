import { Box, Radio, Stack, Text } from '@mantine/core';
import type { JsonObject } from '../../../api-types.ts';
import { Section } from '../../../ui/section.tsx';
import { accessKinds } from '../../../ui/text/access-badge.tsx';
import { asText, type Config, getCredentialNames, isObject } from '../../config.ts';
import { useEditor, useValue } from '../model/editor-context.ts';
import { CredentialList, isStoredCredential, removeCredential } from './authentication-fields.tsx';
import { OAuthFields } from './oauth-fields.tsx';

type Kind = 'none' | 'stored' | 'forwarded' | 'login';

const kinds: { value: Kind; label: string; text: string }[] = [
  {
    value: 'none',
    label: accessKinds.open.name,
    text: 'No credential is sent to the API. If a header contains {{NAME}}, callers use a workspace API key.',
  },
  {
    value: 'stored',
    label: accessKinds.api_key.name,
    text: 'The API receives the credential that you store. Callers use a workspace API key, or log in.',
  },
  { value: 'forwarded', label: accessKinds.caller_token.name, text: accessKinds.caller_token.text },
  { value: 'login', label: accessKinds.oauth.name, text: 'People log in at the provider when their agent connects.' },
];

function getKind({ oauth, authentication }: Config): Kind {
  if (oauth !== undefined) return 'login';
  if (Array.isArray(authentication)) return 'stored';
  if (!isObject(authentication)) return 'none';
  return isStoredCredential(authentication) ? 'stored' : 'forwarded';
}

/** Choice of the API credential, which determines who can call the server. */
export function AccessSection() {
  const { set, isReadOnly } = useEditor();
  const authentication = useValue(['authentication']);
  const credentials = useValue(['credentials']);
  const hasLogin = useValue(['login']) !== undefined;
  const kind = getKind({ oauth: useValue(['oauth']), authentication });
  const firstCredential = Array.isArray(authentication) ? authentication[0] : authentication;
  const current: JsonObject = isObject(firstCredential) ? firstCredential : { type: 'Bearer' };
  const change = (next: Kind) => {
    const emptyLogin = { authorization_url: '', token_url: '', client_id: '', scopes: [] };
    set(['oauth'], next === 'login' ? emptyLogin : undefined);
    if (next === 'none') set(['authentication'], undefined);
    else if (next !== 'stored') set(['authentication'], removeCredential(current));
    else if (!isStoredCredential(current) || kind === 'login')
      set(['authentication'], { ...current, token: asText(current.token) || '{{SERVICE_KEY}}' });
  };
  return (
    <Section title="Access" text="The credential sent to the API. It also determines who can call the server.">
      <Stack gap="md">
        <Radio.Group
          value={kind}
          onChange={(next) => change(next as Kind)}
          aria-label="API credential"
          readOnly={isReadOnly}
        >
          <Stack gap="xs">
            {kinds.map(({ value, label, text }) => (
              <Radio
                key={value}
                value={value}
                label={label}
                description={text}
                disabled={value !== kind && (isReadOnly || (hasLogin && value === 'forwarded'))}
              />
            ))}
          </Stack>
        </Radio.Group>
        {kind === 'login' && <OAuthFields />}
        {kind !== 'none' && <CredentialList path={['authentication']} isStored={kind === 'stored'} />}
        {getCredentialNames({ credentials }).map((name) => (
          <Box key={name}>
            <Text fw={600} mb={4}>
              Credential {name}, for tools that use it
            </Text>
            <CredentialList path={['credentials', name]} isStored />
          </Box>
        ))}
      </Stack>
    </Section>
  );
}
