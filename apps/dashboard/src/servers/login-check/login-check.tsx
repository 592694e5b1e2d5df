import { Alert, Anchor, Badge, Box, Button, Group, Loader, Stack, Text } from '@mantine/core';
import { IconAlertTriangle, IconCircleCheck, IconLogin2 } from '@tabler/icons-react';
import { useCanEdit } from '../../frame/session.ts';
import { toSentence } from '../../ui/states/problem-alert.tsx';
import { CodeBlock } from '../../ui/text/code-block.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { type LoginCheck as Check, type LoginResult, useLoginCheck } from './use-login-check.ts';

type Props = { slug: string; url: string; isUnsaved?: boolean; hasProvider?: boolean };

/** Tests the login of the saved server, at its real provider unless it has none. */
export function LoginCheck({ slug, url, isUnsaved = false, hasProvider = true }: Props) {
  const { check, start, stop } = useLoginCheck(slug, url);
  const canEdit = useCanEdit();
  const isInProgress = check.step === 'starting' || check.step === 'finishing';
  return (
    <Stack gap="sm">
      <Group gap="sm">
        <Button
          variant="default"
          leftSection={<IconLogin2 size={16} />}
          onClick={() => void start()}
          loading={isInProgress}
          disabled={!canEdit || isUnsaved || check.step === 'waiting'}
        >
          Test login
        </Button>
        <Text c="dimmed" flex="1 1 14rem">
          {getHint({ canEdit, isUnsaved, hasProvider })}
        </Text>
      </Group>
      <Box aria-live="polite">
        <Outcome check={check} callbackUrl={hasProvider ? `${url}/callback` : undefined} onStop={stop} />
      </Box>
    </Stack>
  );
}

type HintOptions = { canEdit: boolean; isUnsaved: boolean; hasProvider: boolean };

function getHint({ canEdit, isUnsaved, hasProvider }: HintOptions): string {
  if (!canEdit) return 'Viewers cannot test the login.';
  if (isUnsaved) return 'Save your changes first. The test uses the saved configuration.';
  if (!hasProvider) return 'Opens a tab and logs you in. Only values that you enter there are stored, for you.';
  return 'Opens a tab and logs you in at the provider. Nothing is stored.';
}

/** `callbackUrl` is the one to register at the provider of the server. Undefined if it has none. */
type OutcomeProps = { check: Check; callbackUrl: string | undefined; onStop: () => void };

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
          <Text>Finishing the login…</Text>
        </Group>
      );
    case 'good':
      return callbackUrl === undefined ? (
        <PersonLoginSuccess result={check.result} />
      ) : (
        <LoginSuccess result={check.result} />
      );
    case 'bad':
      return (
        <Alert color="red" icon={<IconAlertTriangle size={18} />} title="Login failed">
          <Text>{toSentence(check.description)}</Text>
          <Text mt="xs">
            {adviceByError.find(([pattern]) => pattern.test(`${check.error}: ${check.description}`))?.[1]}
          </Text>
        </Alert>
      );
  }
}

type WaitingProps = { url: string; isBlocked: boolean } & Pick<OutcomeProps, 'callbackUrl' | 'onStop'>;

function Waiting({ url, isBlocked, callbackUrl, onStop }: WaitingProps) {
  return (
    <Alert color="accent" icon={<Loader size={16} aria-hidden />} title="Waiting for the login in the new tab">
      <Stack gap="xs">
        {isBlocked ? (
          <Text>
            Your browser blocked the new tab.{' '}
            <Anchor href={url} target="_blank" rel="noreferrer">
              Open login
            </Anchor>
          </Text>
        ) : (
          <Text>Allow the login check there, and log in as usual.</Text>
        )}
        {callbackUrl !== undefined && (
          <>
            <Text>
              If the provider shows an error instead of its login page, the client ID is unknown or this exact callback
              URL is not registered (<code>redirect_uri_mismatch</code>):
            </Text>
            <CodeBlock code={callbackUrl} label="callback URL to register" />
          </>
        )}
        <Group>
          <Button variant="default" onClick={onStop}>
            Stop waiting
          </Button>
        </Group>
      </Stack>
    </Alert>
  );
}

function LoginSuccess({ result }: { result: LoginResult }) {
  const { scopes, missing_scopes: missing, expires_in_s: seconds, renewable, person } = result;
  return (
    <Alert color="green" icon={<IconCircleCheck size={18} />} title="Login works">
      <Stack gap={6}>
        <Text>
          The provider issued a token.
          {person !== undefined && ` You are logged in as ${toVisible(person)}.`}
        </Text>
        <Group gap={6}>
          <Text>Scopes:</Text>
          {scopes.length === 0 && <Text>provider defaults</Text>}
          {scopes.map((scope) => (
            <Badge key={scope} color="gray" className="th-mono">
              {toVisible(scope)}
            </Badge>
          ))}
        </Group>
        {missing.length > 0 && (
          <Text>
            Requested, but not listed in the provider’s response: <code>{toVisible(missing.join(' '))}</code>. Either
            the provider omits them, as is common for offline access, or it did not grant them.
          </Text>
        )}
        <Text>
          {seconds === undefined
            ? 'The provider did not state how long the token is valid.'
            : `The token is valid for ${formatDuration(seconds)}.`}{' '}
          {renewable
            ? 'It came with a refresh token, so people stay logged in.'
            : 'It came without a refresh token, so people must log in again when it expires. Many providers issue one for the offline_access scope or an extra parameter.'}
        </Text>
        <Text c="dimmed">Nothing was stored. Toolhost deleted the token unused, and it never reached this page.</Text>
      </Stack>
    </Alert>
  );
}

/** Result of a login at a server without a provider, where the identity provider of the service names the person. */
function PersonLoginSuccess({ result: { person, expires_in_s: seconds = 0, renewable } }: { result: LoginResult }) {
  return (
    <Alert color="green" icon={<IconCircleCheck size={18} />} title="Login works">
      <Stack gap={6}>
        <Text>You were signed in as {person === undefined ? 'a person without a name' : toVisible(person)}.</Text>
        <Text>
          {renewable
            ? `The identity provider is asked about people again after ${formatDuration(seconds)}. They stay logged in until it refuses.`
            : `The login is valid for ${formatDuration(seconds)}. Then people must log in again, because the identity provider issued no refresh token.`}
        </Text>
        <Text c="dimmed">
          The login was ended. Values that you entered are stored for you; you can delete them under Settings → Logins.
        </Text>
      </Stack>
    </Alert>
  );
}

/** Formats a duration in the largest unit with a value of at least two: 3600 → `60 minutes`. */
function formatDuration(seconds: number): string {
  const units = [
    ['day', 86_400],
    ['hour', 3600],
    ['minute', 60],
  ] as const;
  const [unit, size] = units.find(([, length]) => seconds >= 2 * length) ?? (['second', 1] as const);
  return Math.round(seconds / size).toLocaleString('en', { style: 'unit', unit, unitDisplay: 'long' });
}

/** Advice for a failed login, by its OAuth error and the service's message. The first match applies. */
const adviceByError: readonly (readonly [RegExp, string])[] = [
  [
    /^access_denied: .*provider/,
    'Try again and approve the login at the provider. If the provider refuses without asking, check there who may use the application.',
  ],
  [/^access_denied: you are signed in as/, 'Sign in with another account, or change in Settings who may log in.'],
  [/^access_denied:/, 'Try again and choose “Allow and log in”.'],
  [/^invalid_scope:/, 'The provider does not know one of the scopes. Compare them with its documentation.'],
  [
    /^temporarily_unavailable:/,
    'Check the token URL and whether the provider is up. A provider in a private network must be allowed by the operator of this service (EGRESS_ALLOW).',
  ],
  [
    /client id|client secret/,
    'Enter the client ID and client secret again, exactly as the provider shows them, and save.',
  ],
  [
    /does not accept this login/,
    'Compare the callback URL that is registered at the provider with the one here, character by character. Some older providers also require PKCE to be turned off, under “Advanced login settings”.',
  ],
  [
    /expires_in|token_type/,
    'Agents that hold the provider token need these fields. With “Toolhost token” they are not needed.',
  ],
  [/^server_error:/, 'Check the token URL. It must answer a POST with JSON that contains an access_token.'],
  [/^/, 'Try again. Details are recorded under Audit.'],
];
