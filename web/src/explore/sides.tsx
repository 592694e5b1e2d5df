import { Badge, Group, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import { type ReactNode, useId } from 'react';
import type { Header, UpstreamAnswer } from '../answers.ts';
import { Folded } from '../ui/folded.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { indented } from '../ui/text/indented.ts';
import { sizeText } from '../ui/text/size-text.ts';

type Props = {
  /** What the API answered; undefined when it did not, or the reader may not see it. */
  answer: UpstreamAnswer | undefined;
  /** Tokens of what the agent got; undefined where that is not known. */
  tokens: number | undefined;
  /** Description of the files that the agent got. */
  files?: string;
  /** Whether both stand one below the other. */
  isNarrow?: boolean;
  /** What the agent got. */
  children: ReactNode;
};

/** What the API said, and what the agent got of it. */
export function Sides({ answer, tokens, files = '', isNarrow = false, children }: Props) {
  return (
    <SimpleGrid cols={isNarrow || !answer ? 1 : { base: 1, md: 2 }} spacing="lg" verticalSpacing="md">
      {answer && <AnswerSide answer={answer} />}
      <Side title="The agent got" about={gotText(tokens, files, answer?.estimated_tokens)}>
        {children}
      </Side>
    </SimpleGrid>
  );
}

function AnswerSide({ answer }: { answer: UpstreamAnswer }) {
  const { telling, others } = splitHeaders(answer.headers);
  const tokens = answer.estimated_tokens === undefined ? '' : `, about ${tokenText(answer.estimated_tokens)}`;
  const isCut = answer.body !== undefined && new TextEncoder().encode(answer.body).length < answer.body_bytes;
  return (
    <Side
      title="The API said"
      about={`${sizeText(answer.body_bytes)}${tokens}`}
      badge={
        <Badge color={answer.status < 300 ? 'green' : answer.status < 400 ? 'yellow' : 'red'}>{answer.status}</Badge>
      }
    >
      {telling.length > 0 && <CodeBlock code={headerLines(telling)} label="headers of the answer" />}
      {answer.body_bytes > 0 && (
        <CodeBlock
          code={
            answer.body === undefined ? `${answer.body_bytes} bytes that are not text` : indented(answer.body, isCut)
          }
          label="body of the answer"
        />
      )}
      {isCut && (
        <Text size="sm" c="dimmed">
          Only the beginning is shown.
        </Text>
      )}
      {others.length > 0 && (
        <Folded label={others.length === 1 ? 'One more header' : `${others.length} more headers`}>
          <CodeBlock code={headerLines(others)} label="other headers of the answer" />
        </Folded>
      )}
    </Side>
  );
}

function Side({
  title,
  about,
  badge,
  children,
}: {
  title: string;
  about: string;
  badge?: ReactNode;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <Stack gap="xs" miw={0} component="section" aria-labelledby={id}>
      <Group gap="xs" align="baseline">
        <Title order={3} id={id}>
          {title}
        </Title>
        {badge}
        <Text size="sm" c="dimmed">
          {about}
        </Text>
      </Group>
      {children}
    </Stack>
  );
}

export function tokenText(tokens: number): string {
  return tokens === 1 ? '1 token' : `${tokens.toLocaleString('en')} tokens`;
}

/** The size of what the agent got, and how much less that is than what the API said. */
function gotText(tokens: number | undefined, files: string, all: number | undefined): string {
  const texts = [...(tokens === undefined ? [] : [`about ${tokenText(tokens)}`]), ...(files === '' ? [] : [files])];
  const isLess = tokens !== undefined && files === '' && all !== undefined && all > tokens;
  return texts.join(' and ') + (isLess ? `, ${Math.floor((1 - tokens / all) * 100)} % less` : '');
}

/** Headers of an answer that say something about its content, its pages, its limits or its end. */
const telling =
  /^(content-(type|length|language|range|disposition|encoding)|link|location|etag|last-modified|retry-after|allow|warning|deprecation|sunset|www-authenticate|x-(total(-count)?|next-page|page|per-page|request-id)|.*rate-?limit.*|.*request-?id)$/i;

/** The headers that matter when an answer is judged, and the others. */
function splitHeaders(headers: readonly Header[]): { telling: Header[]; others: Header[] } {
  return {
    telling: headers.filter(([name]) => telling.test(name)),
    others: headers.filter(([name]) => !telling.test(name)),
  };
}

function headerLines(headers: readonly Header[]): string {
  return headers.map(([name, value]) => `${name}: ${value}`).join('\n');
}
