import { Alert, Anchor, Box, Loader, Stack, Text, Title } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { IconAlertTriangle, IconCircleCheck, IconInfoCircle } from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import { basePath } from '../../base-path.ts';
import { Logo } from '../../frame/logo.tsx';
import { type LoginMessage, openChannel, returnPath } from './channel.ts';

type Step = 'waiting' | 'unclaimed' | 'finishing' | 'good' | 'bad';

/** How long the page that began the login may take to answer, in ms. */
const patienceMs = 4000;

/** The redirect URI of a login that is tried. It hands the answer to the page that began the login. */
export function LoginReturnPage() {
  useDocumentTitle('Login check – Toolhost');
  const [params] = useState(() => new URLSearchParams(location.search));
  const [step, setStep] = useState<Step>('waiting');
  useEffect(() => {
    const answer = answerIn(params);
    // A code can be used once and only for this login; still it should not stay in the history.
    history.replaceState(null, '', basePath + returnPath);
    const channel = openChannel();
    const unclaimed = setTimeout(() => setStep('unclaimed'), answer ? patienceMs : 0);
    channel.onmessage = ({ data }: MessageEvent<LoginMessage>) => {
      if (data.state !== answer?.state || data.kind === 'answer') return;
      clearTimeout(unclaimed);
      setStep(data.kind === 'taken' ? 'finishing' : data.isGood ? 'good' : 'bad');
    };
    if (answer) channel.postMessage(answer);
    return () => {
      clearTimeout(unclaimed);
      channel.close();
    };
  }, [params]);
  return (
    <Box className="th-splash" component="main" px="md">
      <Stack gap="md" maw={460} w="100%">
        <Logo />
        <Title order={1}>Login check</Title>
        <div aria-live="polite">
          <StepText step={step} />
        </div>
      </Stack>
    </Box>
  );
}

function answerIn(params: URLSearchParams): LoginMessage | undefined {
  const given = (name: string) => params.get(name) ?? undefined;
  const state = given('state');
  if (state === undefined) return undefined;
  const [code, issuer, error, description] = [given('code'), given('iss'), given('error'), given('error_description')];
  return {
    kind: 'answer',
    state,
    ...(code !== undefined && { code }),
    ...(issuer !== undefined && { issuer }),
    ...(error !== undefined && { error }),
    ...(description !== undefined && { description }),
  };
}

function StepText({ step }: { step: Step }) {
  switch (step) {
    case 'waiting':
    case 'finishing':
      return (
        <Alert color="accent" icon={<Loader size={16} aria-hidden />}>
          <Text size="sm">Taking the answer to the page that began the login…</Text>
        </Alert>
      );
    case 'good':
      return (
        <Alert color="green" icon={<IconCircleCheck size={18} />} title="The login works">
          <Text size="sm">What it gave is on the page that began it. You can close this tab.</Text>
        </Alert>
      );
    case 'bad':
      return (
        <Alert color="red" icon={<IconAlertTriangle size={18} />} title="The login did not work">
          <Text size="sm">The page that began it says why and what to do. You can close this tab.</Text>
        </Alert>
      );
    case 'unclaimed':
      return (
        <Alert color="yellow" icon={<IconInfoCircle size={18} />} title="Nobody waits for this login">
          <Text size="sm">
            The page that began it was closed or has stopped waiting, so nobody can use what the login gave. Try it
            again from{' '}
            <Anchor href={`${basePath}/servers`} size="sm">
              your servers
            </Anchor>
            .
          </Text>
        </Alert>
      );
  }
}
