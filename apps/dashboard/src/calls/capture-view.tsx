import { Button, Stack, Text, Title } from '@mantine/core';
import { IconRepeat } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { Call, Capture } from '../api-types.ts';
import { CallCode } from '../explore/call-code.tsx';
import { ResponseAndResult } from '../explore/response-and-result.tsx';
import { RequestView } from '../ui/request-view.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { Hint } from '../ui/text/hint.tsx';
import { indentJson } from '../ui/text/indent-json.ts';
import { TextLink } from '../ui/text/text-link.tsx';
import { Time } from '../ui/text/time.tsx';
import { toVisibleJson } from '../ui/text/visible.ts';

type Props = { call: Call; capture: Capture | undefined };

const shortenedLabels: { [part in NonNullable<Capture['shortened']>[number]]: string } = {
  'result.text': 'the tool result',
  'request.headers': 'the request headers',
  'request.body': 'the request body',
  'response.headers': 'the response headers',
  'request.url': 'the URL',
  'response.body': 'the response body',
  arguments: 'the arguments',
};

/** Arguments, request, response, and result of a captured call. */
export function CaptureView({ call, capture }: Props) {
  const { server, view, tool, id } = call;
  if (!capture) {
    return (
      <Hint>
        This call was not captured. Turn on capture temporarily in the{' '}
        <TextLink to={`/servers/${server}/settings/capture`} inherit underline="always">
          server settings
        </TextLink>
        .
      </Hint>
    );
  }
  const { response, result, request, curl, shortened, arguments: args } = capture;
  const resultText = result && (result.text ?? `${result.bytes} bytes, starting with a file`);
  return (
    <Stack gap="md">
      <Hint>
        Captured without credentials. Deleted <Time at={capture.expires_at} />.
      </Hint>
      {shortened && (
        <Text>Truncated because of its size: {shortened.map((part) => shortenedLabels[part]).join(', ')}.</Text>
      )}
      {args && (
        // The link only fills the form. It sends nothing.
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
      <CaptureSection title="Arguments">
        {args ? (
          <CodeBlock code={toVisibleJson(args)} label="arguments" />
        ) : (
          <Text>{capture.arguments_bytes} bytes were too large to store, so the call cannot be replayed.</Text>
        )}
      </CaptureSection>
      {request && (
        <CaptureSection title="Request">
          <RequestView request={request} curl={curl} />
        </CaptureSection>
      )}
      {(response || result) && (
        <ResponseAndResult response={response} tokens={call.estimated_tokens} isNarrow>
          {resultText !== undefined && (
            <CodeBlock code={indentJson(resultText, true)} label={result?.is_error ? 'error' : 'result'} />
          )}
        </ResponseAndResult>
      )}
      <CallCode slug={server} view={view} tool={tool} args={args ?? {}} />
    </Stack>
  );
}

function CaptureSection({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Stack gap={6}>
      <Title order={3}>{title}</Title>
      {children}
    </Stack>
  );
}
