import { Badge, Box, Code, Group, Loader, Stack, Text } from '@mantine/core';
import type { ModelReply } from '../api-types.ts';
import { formatTokens } from '../explore/response-and-result.tsx';
import { asText, isObject } from '../servers/config.ts';
import { SentRequest, ToolResultSides } from '../servers/try/result/tool-result.tsx';
import { Collapsible } from '../ui/collapsible.tsx';
import { ProblemAlert } from '../ui/states/problem-alert.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { indentJson } from '../ui/text/indent-json.ts';
import { TextLink } from '../ui/text/text-link.tsx';
import { toVisible } from '../ui/text/visible.ts';
import type { Call, Exchange, Step, ToolCallPart } from './conversation.ts';
import { SaveExample } from './save-example.tsx';
import { parseArguments } from './use-conversation.ts';

export function ExchangeView({ exchange, isRunning }: { exchange: Exchange; isRunning: boolean }) {
  const { question, steps, error, isStopped } = exchange;
  return (
    <Stack gap="sm">
      <Box className="th-asked">
        <Text className="th-value">{toVisible(question)}</Text>
      </Box>
      {steps.map((step, index) => (
        <StepView
          // biome-ignore lint/suspicious/noArrayIndexKey: a step has no identity except its index
          key={index}
          step={step}
          isRunning={isRunning && index === steps.length - 1}
        />
      ))}
      {isStopped && <Text c="dimmed">Stopped.</Text>}
      {error !== undefined && <ProblemAlert error={error} title="The conversation ended here" />}
    </Stack>
  );
}

function StepView({ step, isRunning }: { step: Step; isRunning: boolean }) {
  const { text, thought, pendingTool, reply, calls } = step;
  return (
    <Stack gap="xs">
      {thought !== '' && (
        <Collapsible label="Model reasoning">
          <Text c="dimmed" className="th-value">
            {toVisible(thought)}
          </Text>
        </Collapsible>
      )}
      {text !== '' && <Text className="th-value">{toVisible(text)}</Text>}
      {reply && <ReplyUsage reply={reply} />}
      {calls.map((call) => (
        <CallView key={call.toolCall.id} call={call} isRunning={isRunning} />
      ))}
      {isRunning && !reply && (
        <Group gap="xs">
          <Loader size="xs" />
          <Text c="dimmed">
            {pendingTool === undefined
              ? 'The model is replying…'
              : `The model is preparing a call to ${toVisible(pendingTool)}…`}
          </Text>
        </Group>
      )}
    </Stack>
  );
}

function ReplyUsage({ reply }: { reply: ModelReply }) {
  const { input_tokens: input, output_tokens: output, tools, ms, finish } = reply;
  const facts = [
    ...(input === undefined ? [] : [`${formatTokens(input)} in`]),
    ...(output === undefined ? [] : [`${formatTokens(output)} out`]),
    `${tools === 1 ? '1 tool' : `${tools} tools`}, about ${formatTokens(reply.tools_tokens)}`,
    `${ms.toLocaleString('en')} ms`,
    ...(finish === 'length' ? ['truncated at the output limit'] : []),
    ...(finish === 'content-filter' ? ["stopped by the host's content filter"] : []),
  ];
  return (
    <Text size="xs" c="dimmed">
      Model: {facts.join(' · ')}
    </Text>
  );
}

/** Returns the tool and arguments of a call. Unwraps `call_tool`, which tool search uses. */
export function unwrapCall(toolCall: ToolCallPart) {
  const args = parseArguments(toolCall);
  if (toolCall.tool !== 'call_tool' || typeof args?.name !== 'string') return { tool: toolCall.tool, args };
  return { tool: args.name, args: isObject(args.arguments) ? args.arguments : {} };
}

function CallView({ call: { toolCall, result, fallbackText }, isRunning }: { call: Call; isRunning: boolean }) {
  const { tool, args } = unwrapCall(toolCall);
  const status = result?.response?.status;
  return (
    <Box className="th-call" component="section" aria-label={`Call to ${toVisible(toolCall.tool)}`}>
      <Group gap="xs" wrap="wrap">
        {result ? (
          <Badge color={result.is_error ? 'red' : 'green'}>{status ?? (result.is_error ? 'Error' : 'OK')}</Badge>
        ) : isRunning && fallbackText === undefined ? (
          <Loader size="xs" />
        ) : (
          <Badge color="gray">Not called</Badge>
        )}
        <Text fw={600} className="th-mono">
          {toVisible(toolCall.tool === tool ? tool : `${toolCall.tool}: ${tool}`)}
        </Text>
        {result && <Text c="dimmed">{formatTime(result.timing, result.estimated_tokens)}</Text>}
      </Group>
      <Code block className="th-args">
        {toVisible(args ? JSON.stringify(args) : toolCall.arguments)}
      </Code>
      {fallbackText !== undefined && <Text>{toVisible(fallbackText)}</Text>}
      {result && (
        <Collapsible label="Response and request">
          <ToolResultSides result={result} isNarrow />
          <SentRequest result={result} />
          <Group gap="sm">
            {args && <SaveExample tool={tool} args={args} />}
            {result.call_id !== undefined && <TextLink to={`/calls?call=${result.call_id}`}>Call record</TextLink>}
          </Group>
        </Collapsible>
      )}
    </Box>
  );
}

function formatTime(
  timing: { total_ms: number; upstream_ms?: number } | undefined,
  tokens: number | undefined,
): string {
  const time =
    timing && `${timing.total_ms} ms${timing.upstream_ms === undefined ? '' : `, API ${timing.upstream_ms} ms`}`;
  return [
    ...(time === undefined ? [] : [time]),
    ...(tokens === undefined ? [] : [`about ${formatTokens(tokens)}`]),
  ].join(' · ');
}

/** Asks the user to allow a call that is not read-only. */
export function CallConfirmation({ toolCall }: { toolCall: ToolCallPart }) {
  const { tool, args } = unwrapCall(toolCall);
  return (
    <>
      <Text>The model wants to call {toVisible(tool)}. This tool is not read-only and may change data at the API.</Text>
      <CodeBlock code={indentJson(args ? JSON.stringify(args) : asText(toolCall.arguments))} label="arguments" />
    </>
  );
}
