import { Button, Stack, Text, Title } from '@mantine/core';
import { IconRepeat } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { Call, Capture } from '../answers.ts';
import { CallCode } from '../explore/call-code.tsx';
import { Sides } from '../explore/sides.tsx';
import { RequestView } from '../ui/request-view.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { Hint } from '../ui/text/hint.tsx';
import { indented } from '../ui/text/indented.ts';
import { TextLink } from '../ui/text/text-link.tsx';
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
  const { server, view, tool, id } = call;
  if (!capture) {
    return (
      <Hint>
        What was sent and answered was not captured. Capture can be turned on for a while under{' '}
        <TextLink to={`/servers/${server}/options`} inherit underline="always">
          Options of the server
        </TextLink>
        .
      </Hint>
    );
  }
  const { response, result, request, curl, shortened, arguments: args } = capture;
  const got = result && (result.text ?? `${result.bytes} bytes that begin with a file`);
  return (
    <Stack gap="md">
      <Hint>
        Captured without credentials; forgotten <Time at={capture.expires_at} />.
      </Hint>
      {shortened && (
        <Text size="sm">
          Too long to keep all of it. Shortened: {shortened.map((part) => shortenedParts[part]).join(', ')}.
        </Text>
      )}
      {args && (
        // Nothing is sent there by itself.
        <Button
          component={Link}
          to={`/servers/${server}/try?${new URLSearchParams({ tool, replay: id })}`}
          variant="default"
          leftSection={<IconRepeat size={16} />}
          style={{ alignSelf: 'flex-start' }}
        >
          Replay in Try it
        </Button>
      )}
      <Part title="Arguments">
        {args ? (
          <CodeBlock code={visibleJson(args)} label="arguments" />
        ) : (
          <Text size="sm">{capture.arguments_bytes} bytes, too long to keep, so the call cannot be replayed.</Text>
        )}
      </Part>
      {request && (
        <Part title="Request">
          <RequestView request={request} curl={curl} />
        </Part>
      )}
      {(response || result) && (
        <Sides answer={response} tokens={call.estimated_tokens} isNarrow>
          {got !== undefined && <CodeBlock code={indented(got, true)} label={result?.is_error ? 'error' : 'result'} />}
        </Sides>
      )}
      <CallCode slug={server} view={view} tool={tool} args={args ?? {}} />
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
