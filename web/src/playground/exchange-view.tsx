import { Anchor, Badge, Box, Code, Group, Loader, Stack, Text } from '@mantine/core';
import { Link } from 'react-router';
import type { ModelAnswer } from '../answers.ts';
import { tokenText } from '../explore/sides.tsx';
import { isObject, textOf } from '../servers/config.ts';
import { TriedRequest, TriedSides } from '../servers/try/result/tried-result.tsx';
import { Folded } from '../ui/folded.tsx';
import { ProblemAlert } from '../ui/states/problem-alert.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { indented } from '../ui/text/indented.ts';
import { visible } from '../ui/text/visible.ts';
import type { Call, CallPart, Exchange, Step } from './conversation.ts';
import { SaveExample } from './save-example.tsx';
import { argumentsIn } from './use-conversation.ts';

/** A question and every step of the reply. */
export function ExchangeView({ exchange, isRunning }: { exchange: Exchange; isRunning: boolean }) {
  const { question, steps, error, isStopped } = exchange;
  return (
    <Stack gap="sm">
      <Box className="th-asked">
        <Text className="th-value">{visible(question)}</Text>
      </Box>
      {steps.map((step, index) => (
        <StepView
          // biome-ignore lint/suspicious/noArrayIndexKey: a step has no identity except its index
          key={index}
          step={step}
          isRunning={isRunning && index === steps.length - 1}
        />
      ))}
      {isStopped && (
        <Text size="sm" c="dimmed">
          Stopped.
        </Text>
      )}
      {error !== undefined && <ProblemAlert error={error} title="The conversation ended here" />}
    </Stack>
  );
}

function StepView({ step, isRunning }: { step: Step; isRunning: boolean }) {
  const { text, thought, writing, answer, calls } = step;
  return (
    <Stack gap="xs">
      {thought !== '' && (
        <Folded label="Model reasoning">
          <Text size="sm" c="dimmed" className="th-value">
            {visible(thought)}
          </Text>
        </Folded>
      )}
      {text !== '' && <Text className="th-value">{visible(text)}</Text>}
      {answer && <StepCost answer={answer} />}
      {calls.map((call) => (
        <CallView key={call.part.id} call={call} isRunning={isRunning} />
      ))}
      {isRunning && !answer && (
        <Group gap="xs">
          <Loader size="xs" />
          <Text size="sm" c="dimmed">
            {writing === undefined ? 'The model is replying…' : `The model is preparing a call to ${visible(writing)}…`}
          </Text>
        </Group>
      )}
    </Stack>
  );
}

/** Tokens and duration of a model reply. */
function StepCost({ answer }: { answer: ModelAnswer }) {
  const { input_tokens: read, output_tokens: written, tools_tokens: ofTools, tools, ms, finish } = answer;
  const texts = [
    ...(read === undefined ? [] : [`${tokenText(read)} in`]),
    ...(written === undefined ? [] : [`${tokenText(written)} out`]),
    `${tools === 1 ? '1 tool' : `${tools} tools`}, about ${tokenText(ofTools)}`,
    `${ms.toLocaleString('en')} ms`,
    ...(finish === 'length' ? ['truncated at the output limit'] : []),
    ...(finish === 'content-filter' ? ["stopped by the host's content filter"] : []),
  ];
  return (
    <Text size="xs" c="dimmed">
      Model: {texts.join(' · ')}
    </Text>
  );
}

/** Returns the tool and arguments of a call. Unwraps `call_tool`, which tool search uses. */
export function calledBy(part: CallPart) {
  const args = argumentsIn(part);
  const inner = part.tool === 'call_tool' && args ? args : undefined;
  if (typeof inner?.name !== 'string') return { tool: part.tool, args };
  return { tool: inner.name, args: isObject(inner.arguments) ? inner.arguments : {} };
}

function CallView({ call: { part, tried, instead }, isRunning }: { call: Call; isRunning: boolean }) {
  const { tool, args } = calledBy(part);
  const status = tried?.response?.status;
  return (
    <Box className="th-call" component="section" aria-label={`Call to ${visible(part.tool)}`}>
      <Group gap="xs" wrap="wrap">
        {tried ? (
          <Badge color={tried.is_error ? 'red' : 'green'}>{status ?? (tried.is_error ? 'Error' : 'OK')}</Badge>
        ) : isRunning && instead === undefined ? (
          <Loader size="xs" />
        ) : (
          <Badge color="gray">Not called</Badge>
        )}
        <Text fw={600} className="th-mono">
          {visible(part.tool === tool ? tool : `${part.tool}: ${tool}`)}
        </Text>
        {tried && (
          <Text size="sm" c="dimmed">
            {timeText(tried.timing, tried.estimated_tokens)}
          </Text>
        )}
      </Group>
      <Code block className="th-args">
        {visible(args ? JSON.stringify(args) : part.arguments)}
      </Code>
      {instead !== undefined && <Text size="sm">{visible(instead)}</Text>}
      {tried && (
        <Folded label="Response and request">
          <TriedSides tried={tried} isNarrow />
          <TriedRequest tried={tried} />
          <Group gap="sm">
            {args && <SaveExample tool={tool} args={args} />}
            {tried.call_id !== undefined && (
              <Anchor component={Link} to={`/calls?call=${tried.call_id}`} size="sm">
                Call record
              </Anchor>
            )}
          </Group>
        </Folded>
      )}
    </Box>
  );
}

function timeText(timing: { total_ms: number; upstream_ms?: number } | undefined, tokens: number | undefined): string {
  const time =
    timing && `${timing.total_ms} ms${timing.upstream_ms === undefined ? '' : `, API ${timing.upstream_ms} ms`}`;
  return [...(time === undefined ? [] : [time]), ...(tokens === undefined ? [] : [`about ${tokenText(tokens)}`])].join(
    ' · ',
  );
}

/** Asks the user to allow a call that is not read-only. */
export function CallInDoubt({ part }: { part: CallPart }) {
  const { tool, args } = calledBy(part);
  return (
    <>
      <Text size="sm">
        The model wants to call {visible(tool)}. This tool is not read-only and may change data at the API.
      </Text>
      <CodeBlock code={indented(args ? JSON.stringify(args) : textOf(part.arguments))} label="arguments" />
    </>
  );
}
