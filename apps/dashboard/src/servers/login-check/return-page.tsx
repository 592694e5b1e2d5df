import { Alert, Anchor, Box, Loader, Stack, Text, Title } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { IconAlertTriangle, IconCircleCheck, IconInfoCircle } from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import { basePath, loginCheckPath } from '../../base-path.ts';
import { Logo } from '../../frame/logo.tsx';
import { type LoginMessage, openChannel } from './use-login-check.ts';

const steps = {
  waiting: {
    color: 'accent',
    icon: <Loader size={16} aria-hidden />,
    text: 'Returning the result to the page that started the login…',
  },
  good: {
    color: 'green',
    icon: <IconCircleCheck size={18} />,
    title: 'Login works',
    text: 'See the page that started it for the result. You can close this tab.',
  },
  bad: {
    color: 'red',
    icon: <IconAlertTriangle size={18} />,
    title: 'Login failed',
    text: 'See the page that started it for the reason. You can close this tab.',
  },
  unclaimed: {
    color: 'yellow',
    icon: <IconInfoCircle size={18} />,
    title: 'This login is no longer expected',
    text: 'The page that started it was closed or stopped waiting, so no one can use the result. Try again from your servers.',
  },
};

/** Time to wait for a response from the page that started the login, in ms. */
const responseTimeoutMs = 4000;

/** Redirect URI of a login check. Passes the provider's response to the page that started the login. */
export function LoginReturnPage() {
  useDocumentTitle('Login check – Toolhost');
  const [providerResponse] = useState(() => parseProviderResponse(new URLSearchParams(location.search)));
  const [step, setStep] = useState<keyof typeof steps>('waiting');
  useEffect(() => {
    // The code works once and only for this login, but it should not stay in the history.
    history.replaceState(null, '', basePath + loginCheckPath);
    const unclaimed = setTimeout(() => setStep('unclaimed'), providerResponse ? responseTimeoutMs : 0);
    const channel = openChannel((message) => {
      if (message.state !== providerResponse?.state || message.kind === 'answer') return;
      clearTimeout(unclaimed);
      if (message.kind === 'finished') setStep(message.isGood ? 'good' : 'bad');
    });
    if (providerResponse) channel.send(providerResponse);
    return () => {
      clearTimeout(unclaimed);
      channel.close();
    };
  }, [providerResponse]);
  const { text, ...alert } = steps[step];
  return (
    <Box className="th-splash" component="main" px="md">
      <Stack gap="md" maw={460} w="100%">
        <Logo />
        <Title order={1}>Login check</Title>
        <div aria-live="polite">
          <Alert {...alert}>
            <Text>{text}</Text>
          </Alert>
        </div>
        {step === 'unclaimed' && <Anchor href={`${basePath}/servers`}>Your servers</Anchor>}
      </Stack>
    </Box>
  );
}

function parseProviderResponse(params: URLSearchParams): LoginMessage | undefined {
  const { state, code, iss: issuer, error, error_description: description } = Object.fromEntries(params);
  if (state === undefined) return undefined;
  return { kind: 'answer', state, code, issuer, error, description };
}
