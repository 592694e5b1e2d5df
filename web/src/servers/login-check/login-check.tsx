import { Alert, Anchor, Badge, Box, Button, Group, Loader, Stack, Text } from '@mantine/core';
import { IconAlertTriangle, IconCircleCheck, IconLogin2 } from '@tabler/icons-react';
import { useCanEdit } from '../../frame/session.ts';
import { sentence } from '../../ui/states/problem-alert.tsx';
import { CodeBlock } from '../../ui/text/code-block.tsx';
import { visible } from '../../ui/text/visible.ts';
import { type LoginCheck as Check, type GivenLogin, useLoginCheck } from './use-login-check.ts';

type Props = { slug: string; url: string; isUnsaved?: boolean };

/** Tries the login of a server as it is stored, at its real provider. */
export function LoginCheck({ slug, url, isUnsaved = false }: Props) {
  const { check, start, stop } = useLoginCheck(slug, url);
  const canEdit = useCanEdit();
  const isUnderWay = check.step === 'starting' || check.step === 'finishing';
  return (
    <Stack gap="sm">
      <Group gap="sm">
        <Button
          variant="default"
          leftSection={<IconLogin2 size={16} />}
          onClick={() => void start()}
          loading={isUnderWay}
          disabled={!canEdit || isUnsaved || check.step === 'waiting'}
        >
          Try the login
        </Button>
        <Text size="sm" c="dimmed" flex="1 1 14rem">
          {hint(canEdit, isUnsaved)}
        </Text>
      </Group>
      <Box aria-live="polite">
        <Outcome check={check} callbackUrl={`${url}/callback`} onStop={stop} />
      </Box>
    </Stack>
  );
}

function hint(canEdit: boolean, isUnsaved: boolean): string {
  if (!canEdit) return 'Viewers cannot try the login.';
  if (isUnsaved) return 'Save your changes first: the login runs with what is stored.';
  return 'Opens a tab and logs you in at the provider, to see whether it works. Nothing of it is kept.';
}

type OutcomeProps = { check: Check; callbackUrl: string; onStop: () => void };

/** The progress of a login that is tried, and its result. */
function Outcome({ check, callbackUrl, onStop }: OutcomeProps) {
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
            {advices.find(([of]) => of.test(`${check.error}: ${check.description}`))?.[1]}
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

/** In the largest unit of which there are two: 3600 → `60 minutes`. */
function spanText(seconds: number): string {
  const units = [
    ['day', 86_400],
    ['hour', 3600],
    ['minute', 60],
  ] as const;
  const [unit, size] = units.find(([, length]) => seconds >= 2 * length) ?? (['second', 1] as const);
  return Math.round(seconds / size).toLocaleString('en', { style: 'unit', unit, unitDisplay: 'long' });
}

/** Advice for a login that failed, by its OAuth error and our message. */
const advices: readonly (readonly [RegExp, string])[] = [
  [
    /^access_denied: .*provider/,
    'Try again and agree at the provider. If it refuses by itself, check there who may use the application.',
  ],
  [/^access_denied:/, 'Try again and choose “Allow and log in”.'],
  [/^invalid_scope:/, 'The provider does not know one of the scopes: compare them with its own list.'],
  [
    /^temporarily_unavailable:/,
    'Check the token URL and whether the provider is up. A provider in a private network must be allowed by the operator of the service (EGRESS_ALLOW).',
  ],
  [
    /client id|client secret/,
    'Type the client id and the client secret again, just as the provider shows them, and save.',
  ],
  [
    /does not accept this login/,
    'Compare the callback URL that is registered at the provider with the one here, letter by letter. Some old providers also need PKCE switched off, under “More about the login”.',
  ],
  [
    /expires_in|token_type/,
    'Agents that hold the provider’s own token need these fields; with “A token of Toolhost” they are not needed.',
  ],
  [/^server_error:/, 'Check the token URL: it must answer a POST with JSON that has an access_token.'],
  [/^/, 'Try again; what the service noted about it is under Audit.'],
];
