import { Anchor, Badge, Group, Image, Progress, Stack, Text } from '@mantine/core';
import { tokensOfLength } from '../../../../../src/domain/pieces/tokens.ts';
import type { ContentBlock, JsonObject, Tried } from '../../../answers.ts';
import { Sides } from '../../../explore/sides.tsx';
import { Folded } from '../../../ui/folded.tsx';
import { RequestView } from '../../../ui/request-view.tsx';
import { Section } from '../../../ui/section.tsx';
import { CodeBlock } from '../../../ui/text/code-block.tsx';
import { indented } from '../../../ui/text/indented.ts';
import { fileIn, fileText, textIn } from './file-in.ts';
import { PickTransform } from './pick-transform.tsx';

type Props = {
  tried: Tried;
  tool: JsonObject;
  slug: string;
  /** True if the arguments in the form have changed since. */
  isOfOthers: boolean;
};

/** Result of a call as the agent sees it. */
export function TriedResult({ tried, tool, slug, isOfOthers }: Props) {
  const answer = tried.is_error ? undefined : jsonOf(tried);
  return (
    <Section
      title="Result"
      text={
        isOfOthers
          ? 'From the previous call, which had other arguments.'
          : 'The API response, and the result that the agent gets.'
      }
      actions={<Badge color={tried.is_error ? 'red' : 'green'}>{tried.is_error ? 'Error' : 'OK'}</Badge>}
    >
      <Stack gap="md">
        {tried.timing && <Timing {...tried.timing} />}
        <TriedSides tried={tried} />
        {answer !== undefined && typeof answer === 'object' && answer !== null && (
          <PickTransform answer={answer} tool={tool} slug={slug} />
        )}
        <TriedRequest tried={tried} />
      </Stack>
    </Section>
  );
}

/** API response next to the tool result. */
export function TriedSides({ tried, isNarrow = false }: { tried: Tried; isNarrow?: boolean }) {
  return (
    <Sides answer={tried.response} tokens={tokensOf(tried)} files={filesText(tried)} isNarrow={isNarrow}>
      {tried.content.map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a block has no identity but its index
        <ContentView key={index} block={block} isError={tried.is_error} />
      ))}
      {tried.left_out !== undefined && (
        <Text size="sm" c="dimmed">
          {tried.left_out}
        </Text>
      )}
    </Sides>
  );
}

export function TriedRequest({ tried: { request, curl } }: { tried: Tried }) {
  if (!request) return null;
  return (
    <Folded label="Sent request">
      <RequestView request={request} curl={curl} />
    </Folded>
  );
}

/** Returns the estimated tokens of the result's text. Undefined if it has only files, whose tokens are unknown. */
function tokensOf({ content, estimated_tokens }: Tried): number | undefined {
  const length = content.reduce((sum, block) => sum + textIn(block).length, 0);
  const tokens = estimated_tokens ?? tokensOfLength(length);
  return tokens === 0 && content.some(fileIn) ? undefined : tokens;
}

function filesText({ content }: Tried): string {
  const files = content.flatMap((block) => fileIn(block) ?? []);
  return files.map(fileText).join(' and ');
}

/** Returns the value of the first JSON block. Header lines may precede it. */
function jsonOf({ content }: Tried): unknown {
  for (const block of content) {
    try {
      return JSON.parse(textIn(block));
    } catch {
      // Not JSON.
    }
  }
  return undefined;
}

/** Duration of a call, split into the API's time and Toolhost's. */
function Timing({ total_ms: total, upstream_ms: upstream }: NonNullable<Tried['timing']>) {
  const own = Math.max(0, total - (upstream ?? 0));
  return (
    <Group gap="sm" wrap="nowrap">
      <Progress w={90} value={total > 0 ? ((upstream ?? 0) / total) * 100 : 0} aria-hidden />
      <Text size="sm">
        {total} ms
        <Text span size="sm" c="dimmed">
          {upstream === undefined ? ' · no request sent' : ` · API ${upstream} ms, Toolhost ${own} ms`}
        </Text>
      </Text>
    </Group>
  );
}

/** Block of a result. */
function ContentView({ block, isError }: { block: ContentBlock; isError: boolean }) {
  const file = fileIn(block);
  if (!file) return <CodeBlock code={indented(textIn(block))} label={isError ? 'error' : 'content'} />;
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
      <Text size="sm">
        <Anchor href={block.uri} download>
          Download {fileText(file)}
        </Anchor>
      </Text>
    );
  }
  return <Text size="sm">File ({fileText(file)}). Agents get it unchanged. It is not shown here.</Text>;
}
