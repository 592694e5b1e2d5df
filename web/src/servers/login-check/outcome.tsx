import { Alert, Anchor, Badge, Button, Group, Loader, Stack, Text } from '@mantine/core';
import { IconAlertTriangle, IconCircleCheck } from '@tabler/icons-react';
import { sentence } from '../../ui/states/problem-alert.tsx';
import { CodeBlock } from '../../ui/text/code-block.tsx';
import { visible } from '../../ui/text/visible.ts';
import type { GivenLogin, LoginCheck } from './use-login-check.ts';

type Props = { check: LoginCheck; callbackUrl: string; onStop: () => void };

/** The progress of a login that is tried, and its result. */
export function Outcome({ check, callbackUrl, onStop }: Props) {
  switch (check.step) {
    case 'idle':
    case 'starting':
      return null;
    case 'waiting':
      return <Waiting url={check.url} isBlocked={check.isBlocked} callbackUrl={callbackUrl} onStop={onStop} />;
    case 'finishing':
      return (
        <Group gap="sm">
          <Loader size="xs" aria-hidden />
          <Text size="sm">Finishing the login…</Text>
        </Group>
      );
    case 'good':
      return <Good given={check.given} />;
    case 'bad':
      return (
        <Alert color="red" icon={<IconAlertTriangle size={18} />} title="The login did not work">
          <Text size="sm">{sentence(check.description)}</Text>
          <Text size="sm" mt="xs">
            {adviceOn(check.error, check.description)}
          </Text>
        </Alert>
      );
  }
}

type WaitingProps = { url: string; isBlocked: boolean; callbackUrl: string; onStop: () => void };

function Waiting({ url, isBlocked, callbackUrl, onStop }: WaitingProps) {
  return (
    <Alert color="accent" icon={<Loader size={16} aria-hidden />} title="Waiting for the login in the new tab">
      <Stack gap="xs">
        {isBlocked ? (
          <Text size="sm">
            Your browser did not let a tab open.{' '}
            <Anchor href={url} target="_blank" rel="noreferrer" size="sm">
              Open the login
            </Anchor>
          </Text>
        ) : (
          <Text size="sm">Allow the login check there and log in as any person would.</Text>
        )}
        <Text size="sm">
          Does the provider show an error instead of its login? Then it does not know the client id, or this callback
          URL is not registered there exactly so (<code>redirect_uri_mismatch</code>):
        </Text>
        <CodeBlock code={callbackUrl} label="callback URL to register" />
        <Group>
          <Button size="xs" variant="default" onClick={onStop}>
            Stop waiting
          </Button>
        </Group>
      </Stack>
    </Alert>
  );
}

function Good({ given: { scopes, missing_scopes: missing, expires_in_s: seconds, renewable } }: { given: GivenLogin }) {
  return (
    <Alert color="green" icon={<IconCircleCheck size={18} />} title="The login works">
      <Stack gap={6}>
        <Text size="sm">The provider gave a token.</Text>
        <Group gap={6}>
          <Text size="sm">Scopes:</Text>
          {scopes.length === 0 && <Text size="sm">those that the provider grants by default</Text>}
          {scopes.map((scope) => (
            <Badge key={scope} color="gray" className="th-mono">
              {visible(scope)}
            </Badge>
          ))}
        </Group>
        {missing.length > 0 && (
          <Text size="sm">
            Asked for, but not named in the provider’s answer: <code>{visible(missing.join(' '))}</code>. Some providers
            leave out offline access; others did not grant it.
          </Text>
        )}
        <Text size="sm">
          {seconds === undefined
            ? 'The provider did not say how long the token lasts.'
            : `The token lasts ${spanText(seconds)}.`}{' '}
          {renewable
            ? 'It came with a refresh token, so people stay logged in.'
            : 'It came without a refresh token, so people log in again when it ends; many providers give one for the scope offline_access or an extra parameter.'}
        </Text>
        <Text size="sm" c="dimmed">
          Nothing was kept: Toolhost deleted the token unused, and it never reached this page.
        </Text>
      </Stack>
    </Alert>
  );
}

const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;

/** 3599 → `1 hour`, 5400 → `90 minutes`: the largest unit of which there are two, or a whole one. */
function spanText(given: number): string {
  const seconds = given < 120 ? given : Math.round(given / 60) * 60;
  const fits = ([, size]: (typeof units)[number]) => seconds >= 2 * size || seconds === size;
  const [unit, size] = units.find(fits) ?? units[3];
  const count = Math.round(seconds / size);
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

/** Advice for a login that failed, by its OAuth error and our message. */
function adviceOn(error: string, description: string): string {
  if (error === 'access_denied') {
    return /provider/.test(description)
      ? 'Try again and agree at the provider. If it refuses by itself, check there who may use the application.'
      : 'Try again and choose “Allow and log in”.';
  }
  if (error === 'invalid_scope') return 'The provider does not know one of the scopes: compare them with its own list.';
  if (error === 'temporarily_unavailable')
    return 'Check the token URL and whether the provider is up. A provider in a private network must be allowed by the operator of the service (EGRESS_ALLOW).';
  if (/client id|client secret/.test(description))
    return 'Type the client id and the client secret again, just as the provider shows them, and save.';
  if (/does not accept this login/.test(description))
    return 'Compare the callback URL that is registered at the provider with the one here, letter by letter. Some old providers also need PKCE switched off, under “More about the login”.';
  if (/expires_in|token_type/.test(description))
    return 'Agents that hold the provider’s own token need these fields; with “A token of Toolhost” they are not needed.';
  if (error === 'server_error') return 'Check the token URL: it must answer a POST with JSON that has an access_token.';
  return 'Try again; what the service noted about it is under Audit.';
}
