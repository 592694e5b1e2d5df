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
    text: 'Taking the answer to the page that began the login…',
  },
  good: {
    color: 'green',
    icon: <IconCircleCheck size={18} />,
    title: 'The login works',
    text: 'What it gave is on the page that began it. You can close this tab.',
  },
  bad: {
    color: 'red',
    icon: <IconAlertTriangle size={18} />,
    title: 'The login did not work',
    text: 'The page that began it says why and what to do. You can close this tab.',
  },
  unclaimed: {
    color: 'yellow',
    icon: <IconInfoCircle size={18} />,
    title: 'Nobody waits for this login',
    text: 'The page that began it was closed or has stopped waiting, so nobody can use what the login gave. Try it again from your servers.',
  },
};

/** How long the page that began the login may take to answer, in ms. */
const patienceMs = 4000;

/** The redirect URI of a login that is tried. It hands the answer to the page that began the login. */
export function LoginReturnPage() {
  useDocumentTitle('Login check – Toolhost');
  const [answer] = useState(() => answerIn(new URLSearchParams(location.search)));
  const [step, setStep] = useState<keyof typeof steps>('waiting');
  useEffect(() => {
    // A code can be used once and only for this login; still it should not stay in the history.
    history.replaceState(null, '', basePath + loginCheckPath);
    const unclaimed = setTimeout(() => setStep('unclaimed'), answer ? patienceMs : 0);
    const channel = openChannel((message) => {
      if (message.state !== answer?.state || message.kind === 'answer') return;
      clearTimeout(unclaimed);
      if (message.kind === 'finished') setStep(message.isGood ? 'good' : 'bad');
    });
    if (answer) channel.tell(answer);
    return () => {
      clearTimeout(unclaimed);
      channel.close();
    };
  }, [answer]);
  const { text, ...alert } = steps[step];
  return (
    <Box className="th-splash" component="main" px="md">
      <Stack gap="md" maw={460} w="100%">
        <Logo />
        <Title order={1}>Login check</Title>
        <div aria-live="polite">
          <Alert {...alert}>
            <Text size="sm">{text}</Text>
          </Alert>
        </div>
        {step === 'unclaimed' && (
          <Anchor href={`${basePath}/servers`} size="sm">
            Your servers
          </Anchor>
        )}
      </Stack>
    </Box>
  );
}

function answerIn(params: URLSearchParams): LoginMessage | undefined {
  const { state, code, iss: issuer, error, error_description: description } = Object.fromEntries(params);
  if (state === undefined) return undefined;
  return { kind: 'answer', state, code, issuer, error, description };
}
