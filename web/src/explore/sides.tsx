import { Badge, Group, SimpleGrid, Stack, Title } from '@mantine/core';
import { type ReactNode, useId } from 'react';
import type { Header, UpstreamAnswer } from '../answers.ts';
import { Folded } from '../ui/folded.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { Hint } from '../ui/text/hint.tsx';
import { indented } from '../ui/text/indented.ts';
import { sizeText } from '../ui/text/size-text.ts';

type Props = {
  /** API response; undefined if there was none or the user may not see it. */
  answer: UpstreamAnswer | undefined;
  /** Estimated tokens of the result; undefined if unknown. */
  tokens: number | undefined;
  /** Description of the files in the result. */
  files?: string;
  /** True to stack response and result vertically. */
  isNarrow?: boolean;
  /** Result that the agent received. */
  children: ReactNode;
};

/** API response next to the tool result that the agent received. */
export function Sides({ answer, tokens, files = '', isNarrow = false, children }: Props) {
  return (
    <SimpleGrid cols={isNarrow || !answer ? 1 : { base: 1, md: 2 }} spacing="lg" verticalSpacing="md">
      {answer && <AnswerSide answer={answer} />}
      <Side title="Sent to agent" about={gotText(tokens, files, answer?.estimated_tokens)}>
        {children}
      </Side>
    </SimpleGrid>
  );
}

function AnswerSide({
  answer: { status, headers, body, body_bytes: bytes, estimated_tokens },
}: {
  answer: UpstreamAnswer;
}) {
  const tokens = estimated_tokens === undefined ? '' : `, about ${tokenText(estimated_tokens)}`;
  const isCut = body !== undefined && new TextEncoder().encode(body).length < bytes;
  const first = headers.filter(([name]) => telling.test(name));
  const others = headers.filter(([name]) => !telling.test(name));
  return (
    <Side
      title="API response"
      about={`${sizeText(bytes)}${tokens}`}
      badge={<Badge color={status < 300 ? 'green' : status < 400 ? 'yellow' : 'red'}>{status}</Badge>}
    >
      <Headers headers={first} label="response headers" />
      {bytes > 0 && (
        <CodeBlock
          code={body === undefined ? `${bytes} bytes of binary data` : indented(body, isCut)}
          label="response body"
        />
      )}
      {isCut && <Hint>Only the beginning is shown.</Hint>}
      {others.length > 0 && (
        <Folded label={others.length === 1 ? 'One more header' : `${others.length} more headers`}>
          <Headers headers={others} label="other response headers" />
        </Folded>
      )}
    </Side>
  );
}

function Headers({ headers, label }: { headers: readonly Header[]; label: string }) {
  if (headers.length === 0) return null;
  return <CodeBlock code={headers.map(([name, value]) => `${name}: ${value}`).join('\n')} label={label} />;
}

type SideProps = { title: string; about: string; badge?: ReactNode; children: ReactNode };

function Side({ title, about, badge, children }: SideProps) {
  const id = useId();
  return (
    <Stack gap="xs" miw={0} component="section" aria-labelledby={id}>
      <Group gap="xs" align="baseline">
        <Title order={3} id={id}>
          {title}
        </Title>
        {badge}
        <Hint>{about}</Hint>
      </Group>
      {children}
    </Stack>
  );
}

export function tokenText(tokens: number): string {
  return tokens === 1 ? '1 token' : `${tokens.toLocaleString('en')} tokens`;
}

/** Formats the size of the tool result and its reduction compared to the API response. */
function gotText(tokens: number | undefined, files: string, all: number | undefined): string {
  if (tokens === undefined) return files;
  if (files !== '') return `about ${tokenText(tokens)} and ${files}`;
  const less = all !== undefined && all > tokens ? `, ${Math.floor((1 - tokens / all) * 100)}% less` : '';
  return `about ${tokenText(tokens)}${less}`;
}

/** Response headers about content, pagination, rate limits, or deprecation. They are shown first. */
const telling =
  /^(content-(type|length|language|range|disposition|encoding)|link|location|etag|last-modified|retry-after|allow|warning|deprecation|sunset|www-authenticate|x-(total(-count)?|next-page|page|per-page|request-id)|.*rate-?limit.*|.*request-?id)$/i;
