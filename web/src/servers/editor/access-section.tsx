import { Radio, Stack } from '@mantine/core';
import { Section } from '../../ui/section.tsx';
import { type Config, isObject, textOf } from '../config.ts';
import { AuthenticationFields } from './authentication-fields.tsx';
import { useEditor } from './editor-context.ts';
import { OAuthFields } from './oauth-fields.tsx';

type Kind = 'none' | 'stored' | 'forwarded' | 'login';

const kinds: { value: Kind; label: string; text: string }[] = [
  {
    value: 'none',
    label: "No credential, or one in the tools' headers",
    text: 'Nothing is added to the requests. With {{NAME}} in a header, callers use an API key of this workspace.',
  },
  {
    value: 'stored',
    label: 'A stored credential',
    text: 'Callers use an API key of this workspace; the API receives the credential that you store.',
  },
  {
    value: 'forwarded',
    label: "The caller's own token",
    text: 'Callers send their own token of the API, and it is passed on.',
  },
  { value: 'login', label: 'A login (OAuth)', text: 'People log in at the provider when their agent connects.' },
];

function kindOf({ oauth, authentication }: Config): Kind {
  if (oauth !== undefined) return 'login';
  if (!isObject(authentication)) return 'none';
  return authentication.token === undefined ? 'forwarded' : 'stored';
}

/** Who may call, explained by the credential that the API receives. */
export function AccessSection() {
  const { config, set, isReadOnly } = useEditor();
  const kind = kindOf(config);
  const before = isObject(config.authentication) ? config.authentication : { type: 'Bearer' };
  const { token, ...withoutToken } = before as { token?: unknown; [key: string]: unknown };
  const change = (next: Kind) => {
    const emptyLogin = { authorization_url: '', token_url: '', client_id: '', client_secret: '', scopes: [] };
    set(['oauth'], next === 'login' ? emptyLogin : undefined);
    if (next === 'none') set(['authentication'], undefined);
    else if (next === 'stored') set(['authentication'], { ...before, token: textOf(token) || '{{SERVICE_KEY}}' });
    else set(['authentication'], withoutToken);
  };
  return (
    <Section title="Access" text="How the API knows who calls, and with that who may call the server.">
      <Stack gap="md">
        <Radio.Group
          value={kind}
          onChange={(next) => change(next as Kind)}
          aria-label="What the API receives"
          readOnly={isReadOnly}
        >
          <Stack gap="xs">
            {kinds.map(({ value, label, text }) => (
              <Radio
                key={value}
                value={value}
                label={label}
                description={text}
                disabled={isReadOnly && value !== kind}
              />
            ))}
          </Stack>
        </Radio.Group>
        {kind === 'login' && <OAuthFields />}
        {kind !== 'none' && <AuthenticationFields isStored={kind === 'stored'} />}
      </Stack>
    </Section>
  );
}
