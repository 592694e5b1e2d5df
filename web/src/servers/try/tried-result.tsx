import { Badge, Group, Stack, Text } from '@mantine/core';
import type { ContentBlock, JsonObject, Tried } from '../../answers.ts';
import { Folded } from '../../ui/folded.tsx';
import { RequestView } from '../../ui/request-view.tsx';
import { Section } from '../../ui/section.tsx';
import { ContentView } from './content-view.tsx';
import { fileIn, fileText } from './file-in.ts';
import { PickTransform } from './pick-transform.tsx';
import { TimingBar } from './timing-bar.tsx';

type Props = {
  tried: Tried;
  tool: JsonObject;
  slug: string;
  /** Whether the arguments on screen have changed since. */
  isOfOthers: boolean;
};

/** The result as the agent sees it. */
export function TriedResult({ tried, tool, slug, isOfOthers }: Props) {
  const answer = tried.is_error ? undefined : (tried.structured_content ?? jsonOf(tried));
  return (
    <Section
      title="Result"
      text={isOfOthers ? 'Of the call before: its arguments were others.' : 'As the agent sees it.'}
      actions={<Badge color={tried.is_error ? 'red' : 'green'}>{tried.is_error ? 'Error' : 'OK'}</Badge>}
    >
      <Stack gap="md">
        <Group gap="lg">
          {tried.timing && <TimingBar total={tried.timing.total_ms} upstream={tried.timing.upstream_ms} />}
          <Text size="sm" c="dimmed">
            {costText(tried)}
          </Text>
        </Group>
        {tried.content.map((block, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a block has no identity but its index
          <ContentView key={index} block={block} isError={tried.is_error} />
        ))}
        {tried.left_out !== undefined && (
          <Text size="sm" c="dimmed">
            {tried.left_out}
          </Text>
        )}
        {answer !== undefined && typeof answer === 'object' && answer !== null && (
          <PickTransform answer={answer} tool={tool} slug={slug} />
        )}
        {tried.request && (
          <Folded label="The request that was sent">
            <RequestView request={tried.request} curl={tried.curl} />
          </Folded>
        )}
      </Stack>
    </Section>
  );
}

/** The size of the result for the model. The number of tokens of a file is not known beforehand. */
function costText(tried: Tried): string {
  const files = tried.content.flatMap((block) => fileIn(block) ?? []).map((file) => fileText(file));
  const tokens = tried.estimated_tokens ?? roughTokens(tried);
  const text = files.length === 0 || tokens > 0 ? [`About ${tokens.toLocaleString('en')} tokens`] : [];
  return [...text, ...files].join(' and ');
}

/** About four characters make a token. */
function roughTokens({ content }: Tried): number {
  return Math.ceil(content.reduce((sum, block) => sum + textOf(block).length, 0) / 4);
}

function textOf(block: ContentBlock | undefined): string {
  return block?.type === 'text' ? block.text : '';
}

function jsonOf({ content }: Tried): unknown {
  try {
    return JSON.parse(textOf(content[0]));
  } catch {
    return undefined;
  }
}
