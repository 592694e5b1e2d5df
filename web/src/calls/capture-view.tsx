import { Anchor, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { Call, Capture } from '../answers.ts';
import { CodeBlock } from '../ui/code-block.tsx';
import { RequestView } from '../ui/request-view.tsx';
import { Time } from '../ui/time.tsx';
import { visibleJson } from '../ui/visible.ts';

type Props = { call: Call; capture: Capture | undefined };

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
  const { response, request, curl } = capture;
  return (
    <Stack gap="md">
      <Text size="sm" c="dimmed">
        Captured without credentials; forgotten <Time at={capture.expires_at} />.
      </Text>
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
      {response && (
        <Part title={`Answer, ${response.status}`}>
          <CodeBlock
            code={response.headers.map(([name, value]) => `${name}: ${value}`).join('\n')}
            label="headers of the answer"
          />
          <CodeBlock
            code={response.body ?? `${response.body_bytes} bytes that are not text`}
            label="body of the answer"
          />
        </Part>
      )}
    </Stack>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Stack gap={6}>
      <Title order={3}>{title}</Title>
      {children}
    </Stack>
  );
}
