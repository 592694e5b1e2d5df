import { Radio, Stack, Text } from '@mantine/core';
import { Section } from '../../ui/section.tsx';
import { TextLink } from '../../ui/text/text-link.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { asList, asText, getLoginFields, getValueAt } from '../config.ts';
import { useCurrentServer } from '../server-page.tsx';

type Props = { usesKey: boolean; onChange: (usesKey: boolean) => void };

/** Choice of how a client connects to a server that people log in to: it logs in, or it sends an API key. */
export function LoginChoice({ usesKey, onChange }: Props) {
  const { server, config } = useCurrentServer();
  const isPersonal = getLoginFields(config).some(({ optional }) => optional !== true);
  const allowedClients = asList(getValueAt(config, ['login', 'clients'])).map(asText);
  return (
    <Section title="Access" text="People log in, and programs can send an API key.">
      <Stack gap="sm">
        <Radio.Group
          value={usesKey ? 'key' : 'login'}
          onChange={(next) => onChange(next === 'key')}
          aria-label="How the client connects"
        >
          <Stack gap="xs">
            <Radio
              value="login"
              label="Log in"
              description="claude.ai and ChatGPT take only the URL. Coding agents and editors can log in, too."
            />
            <Radio
              value="key"
              label="API key"
              description={`For scripts, SDKs, and terminals without a browser.${isPersonal ? ' A key acts for the member who created it, with that member’s values.' : ''}`}
            />
          </Stack>
        </Radio.Group>
        {usesKey && isPersonal && (
          <Text size="sm">
            Your key works once you have entered your values under{' '}
            <TextLink to={`/servers/${server.slug}/logins`} underline="always">
              Logins
            </TextLink>
            .
          </Text>
        )}
        {!usesKey && allowedClients.length > 0 && (
          <Text size="sm">Only these clients may log in: {toVisible(allowedClients.join(', '))}.</Text>
        )}
      </Stack>
    </Section>
  );
}
