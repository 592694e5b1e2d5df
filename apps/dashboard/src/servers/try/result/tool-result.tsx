import { Anchor, Badge, Group, Image, Progress, Stack, Text } from '@mantine/core';
import { estimateTokenCount } from '@toolhost/tool-config/tokens';
import type { ContentBlock, JsonObject, ToolCallResult } from '../../../api-types.ts';
import { ResponseAndResult } from '../../../explore/response-and-result.tsx';
import { Collapsible } from '../../../ui/collapsible.tsx';
import { RequestView } from '../../../ui/request-view.tsx';
import { Section } from '../../../ui/section.tsx';
import { CodeBlock } from '../../../ui/text/code-block.tsx';
import { indentJson } from '../../../ui/text/indent-json.ts';
import { formatFile, getFile, getText } from './block-file.ts';
import { PickTransform } from './pick-transform.tsx';

type Props = {
  result: ToolCallResult;
  tool: JsonObject;
  slug: string;
  /** True if the arguments in the form have changed since the call. */
  isStale: boolean;
};

/** Result of a call as the agent sees it. */
export function ToolResult({ result, tool, slug, isStale }: Props) {
  const json = result.is_error ? undefined : getJson(result);
  return (
    <Section
      title="Result"
      text={isStale && 'From the previous call, which had other arguments.'}
      actions={result.is_error ? <Badge color="red">Error</Badge> : <Text c="dimmed">OK</Text>}
    >
      <Stack gap="md">
        {result.timing && <Timing {...result.timing} />}
        <ToolResultSides result={result} />
        {json !== undefined && typeof json === 'object' && json !== null && (
          <PickTransform response={json} tool={tool} slug={slug} />
        )}
        <SentRequest result={result} />
      </Stack>
    </Section>
  );
}

/** API response next to the tool result. */
export function ToolResultSides({ result, isNarrow = false }: { result: ToolCallResult; isNarrow?: boolean }) {
  return (
    <ResponseAndResult
      response={result.response}
      tokens={estimateTokens(result)}
      files={formatFiles(result)}
      isNarrow={isNarrow}
    >
      {result.content.map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a block has no identity but its index
        <ContentView key={index} block={block} isError={result.is_error} />
      ))}
      {result.left_out !== undefined && <Text c="dimmed">{result.left_out}</Text>}
    </ResponseAndResult>
  );
}

export function SentRequest({ result: { request, curl } }: { result: ToolCallResult }) {
  if (!request) return null;
  return (
    <Collapsible label="Sent request">
      <RequestView request={request} curl={curl} />
    </Collapsible>
  );
}

/** Returns the estimated tokens of the result's text. Undefined if it has only files, whose tokens are unknown. */
function estimateTokens({ content, estimated_tokens }: ToolCallResult): number | undefined {
  const length = content.reduce((sum, block) => sum + getText(block).length, 0);
  const tokens = estimated_tokens ?? estimateTokenCount(length);
  return tokens === 0 && content.some(getFile) ? undefined : tokens;
}

function formatFiles({ content }: ToolCallResult): string {
  const files = content.flatMap((block) => getFile(block) ?? []);
  return files.map(formatFile).join(' and ');
}

/** Returns the value of the first JSON block. Blocks before it may hold other text, such as headers. */
function getJson({ content }: ToolCallResult): unknown {
  for (const block of content) {
    try {
      return JSON.parse(getText(block));
    } catch {
      // Not JSON.
    }
  }
  return undefined;
}

/** Duration of a call, split into the API's time and Toolhost's. */
function Timing({ total_ms: total, upstream_ms: upstream }: NonNullable<ToolCallResult['timing']>) {
  const overheadMs = Math.max(0, total - (upstream ?? 0));
  return (
    <Group gap="sm" wrap="nowrap">
      <Progress w={90} value={total > 0 ? ((upstream ?? 0) / total) * 100 : 0} aria-hidden />
      <Text>
        {total} ms
        <Text span c="dimmed">
          {upstream === undefined ? ' · no request sent' : ` · API ${upstream} ms, Toolhost ${overheadMs} ms`}
        </Text>
      </Text>
    </Group>
  );
}

function ContentView({ block, isError }: { block: ContentBlock; isError: boolean }) {
  const file = getFile(block);
  if (!file) return <CodeBlock code={indentJson(getText(block))} label={isError ? 'error' : 'content'} />;
  if (block.type === 'image' && /^image\/(png|jpeg|gif|webp)$/.test(file.type)) {
    return (
      <Image
        src={`data:${file.type};base64,${block.data}`}
        alt={`Image in the result, ${file.type}`}
        maw={480}
        radius="md"
      />
    );
  }
  if (block.type === 'resource_link') {
    return (
      <Text>
        <Anchor href={block.uri} download>
          Download {formatFile(file)}
        </Anchor>
      </Text>
    );
  }
  return <Text>File ({formatFile(file)}). Agents get it unchanged. It is not shown here.</Text>;
}
