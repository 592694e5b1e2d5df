import { Anchor, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { Call, Capture } from '../answers.ts';
import { CallCode } from '../explore/call-code.tsx';
import { ReplayButton } from '../explore/replay-button.tsx';
import { Sides } from '../explore/sides.tsx';
import { RequestView } from '../ui/request-view.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { indented } from '../ui/text/indented.ts';
import { Time } from '../ui/text/time.tsx';
import { visibleJson } from '../ui/text/visible.ts';

type Props = { call: Call; capture: Capture | undefined };

const shortenedParts: { [part in NonNullable<Capture['shortened']>[number]]: string } = {
  'result.text': 'what the agent got',
  'request.headers': 'the headers of the request',
  'request.body': 'the body of the request',
  'response.headers': 'the headers of the answer',
  'request.url': 'the URL',
  'response.body': 'the body of the answer',
  arguments: 'the arguments',
};

/** The request and answer of a call that was captured. */
export function CaptureView({ call, capture }: Props) {
  if (!capture) {
    return (
      <Text size="sm" c="dimmed">
        What was sent and answered was not captured. Capture can be turned on for a while under{' '}
        <Anchor component={Link} to={`/servers/${call.server}/options`} size="sm" underline="always">
          Options of the server
        </Anchor>
        .
      </Text>
    );
  }
  const { response, result, request, curl } = capture;
  return (
    <Stack gap="md">
      <Text size="sm" c="dimmed">
        Captured without credentials; forgotten <Time at={capture.expires_at} />.
      </Text>
      {capture.shortened && (
        <Text size="sm">
          The call was too long to keep all of it. Shortened:{' '}
          {capture.shortened.map((part) => shortenedParts[part]).join(', ')}.
        </Text>
      )}
      <ReplayButton call={call} capture={capture} />
      <Part title="Arguments">
        {capture.arguments ? (
          <CodeBlock code={visibleJson(capture.arguments)} label="arguments" />
        ) : (
          <Text size="sm">{capture.arguments_bytes} bytes, too long to keep.</Text>
        )}
      </Part>
      {request && (
        <Part title="Request">
          <RequestView request={request} curl={curl} />
        </Part>
      )}
      {(response || result) && (
        <Sides answer={response} tokens={call.estimated_tokens} isNarrow>
          {result ? <Got result={result} /> : null}
        </Sides>
      )}
      <CallCode slug={call.server} view={call.view} tool={call.tool} args={capture.arguments ?? {}} />
    </Stack>
  );
}

function Got({ result }: { result: NonNullable<Capture['result']> }) {
  const text = result.text ?? `${result.bytes} bytes that begin with a file`;
  return <CodeBlock code={indented(text, true)} label={result.is_error ? 'error' : 'result'} />;
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Stack gap={6}>
      <Title order={3}>{title}</Title>
      {children}
    </Stack>
  );
}
