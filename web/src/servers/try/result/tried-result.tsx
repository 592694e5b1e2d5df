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
  /** Whether the arguments on screen have changed since. */
  isOfOthers: boolean;
};

/** The result as the agent sees it. */
export function TriedResult({ tried, tool, slug, isOfOthers }: Props) {
  const answer = tried.is_error ? undefined : jsonOf(tried);
  return (
    <Section
      title="Result"
      text={
        isOfOthers
          ? 'Of the call before: its arguments were others.'
          : 'What the API answered, and what the agent gets of it.'
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

/** What the API said, and what the agent gets of it. */
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
    <Folded label="The request that was sent">
      <RequestView request={request} curl={curl} />
    </Folded>
  );
}

/** Estimated tokens of the text of the result; undefined when it has only files, whose tokens are not known. */
function tokensOf({ content, estimated_tokens }: Tried): number | undefined {
  const length = content.reduce((sum, block) => sum + textIn(block).length, 0);
  const tokens = estimated_tokens ?? tokensOfLength(length);
  return tokens === 0 && content.some(fileIn) ? undefined : tokens;
}

function filesText({ content }: Tried): string {
  const files = content.flatMap((block) => fileIn(block) ?? []);
  return files.map(fileText).join(' and ');
}

/** The value of the first block that is JSON; the lines of its headers stand before it. */
function jsonOf({ content }: Tried): unknown {
  for (const block of content) {
    try {
      return JSON.parse(textIn(block));
    } catch {
      // Not this one.
    }
  }
  return undefined;
}

/** The duration of a call, divided into the API's time and ours. */
function Timing({ total_ms: total, upstream_ms: upstream }: NonNullable<Tried['timing']>) {
  const own = Math.max(0, total - (upstream ?? 0));
  return (
    <Group gap="sm" wrap="nowrap">
      <Progress w={90} value={total > 0 ? ((upstream ?? 0) / total) * 100 : 0} aria-hidden />
      <Text size="sm">
        {total} ms
        <Text span size="sm" c="dimmed">
          {upstream === undefined ? ' · nothing was sent' : ` · API ${upstream} ms, Toolhost ${own} ms`}
        </Text>
      </Text>
    </Group>
  );
}

/** One block of a result. */
function ContentView({ block, isError }: { block: ContentBlock; isError: boolean }) {
  const file = fileIn(block);
  if (!file) return <CodeBlock code={indented(textIn(block))} label={isError ? 'error' : 'answer'} />;
  if (block.type === 'image' && /^image\/(png|jpeg|gif|webp)$/.test(file.type)) {
    return (
      <Image
        src={`data:${file.type};base64,${block.data}`}
        alt={`Image of the answer, ${file.type}`}
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
  return <Text size="sm">A file ({fileText(file)}). Agents get it as it is; it is not shown here.</Text>;
}
