import { Badge, Group, SimpleGrid, Stack, Title } from '@mantine/core';
import { type ReactNode, useId } from 'react';
import type { Header, UpstreamResponse } from '../api-types.ts';
import { Collapsible } from '../ui/collapsible.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { Hint } from '../ui/text/hint.tsx';
import { indentJson } from '../ui/text/indent-json.ts';
import { formatSize } from '../ui/text/size-text.ts';

type Props = {
  /** API response; undefined if there was none, or if the user must not see it. */
  response: UpstreamResponse | undefined;
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
export function ResponseAndResult({ response, tokens, files = '', isNarrow = false, children }: Props) {
  return (
    <SimpleGrid cols={isNarrow || !response ? 1 : { base: 1, md: 2 }} spacing="lg" verticalSpacing="md">
      {response && <ResponseSide response={response} />}
      <Side title="Sent to agent" summary={formatResultSize(tokens, files, response?.estimated_tokens)}>
        {children}
      </Side>
    </SimpleGrid>
  );
}

function ResponseSide({ response }: { response: UpstreamResponse }) {
  const { status, headers, body, body_bytes: bytes, estimated_tokens } = response;
  const tokens = estimated_tokens === undefined ? '' : `, about ${formatTokens(estimated_tokens)}`;
  const isTruncated = body !== undefined && new TextEncoder().encode(body).length < bytes;
  const failureColor = status < 400 ? 'yellow' : 'red';
  const mainHeaders = headers.filter(([name]) => mainHeaderNames.test(name));
  const otherHeaders = headers.filter(([name]) => !mainHeaderNames.test(name));
  return (
    <Side
      title="API response"
      summary={`${formatSize(bytes)}${tokens}`}
      badge={<Badge color={status < 300 ? 'gray' : failureColor}>{status}</Badge>}
    >
      <Headers headers={mainHeaders} label="response headers" />
      {bytes > 0 && (
        <CodeBlock
          code={body === undefined ? `${bytes} bytes of binary data` : indentJson(body, isTruncated)}
          label="response body"
        />
      )}
      {isTruncated && <Hint>Only the beginning is shown.</Hint>}
      {otherHeaders.length > 0 && (
        <Collapsible label={otherHeaders.length === 1 ? 'One more header' : `${otherHeaders.length} more headers`}>
          <Headers headers={otherHeaders} label="other response headers" />
        </Collapsible>
      )}
    </Side>
  );
}

function Headers({ headers, label }: { headers: readonly Header[]; label: string }) {
  if (headers.length === 0) return null;
  return <CodeBlock code={headers.map(([name, value]) => `${name}: ${value}`).join('\n')} label={label} />;
}

type SideProps = { title: string; summary: string; badge?: ReactNode; children: ReactNode };

function Side({ title, summary, badge, children }: SideProps) {
  const id = useId();
  return (
    <Stack gap="xs" miw={0} component="section" aria-labelledby={id}>
      <Group gap="xs" align="baseline">
        <Title order={3} id={id}>
          {title}
        </Title>
        {badge}
        <Hint>{summary}</Hint>
      </Group>
      {children}
    </Stack>
  );
}

export function formatTokens(tokens: number): string {
  return tokens === 1 ? '1 token' : `${tokens.toLocaleString('en')} tokens`;
}

/** Formats the size of the tool result and its reduction compared to the API response. */
function formatResultSize(tokens: number | undefined, files: string, responseTokens: number | undefined): string {
  if (tokens === undefined) return files;
  if (files !== '') return `about ${formatTokens(tokens)} and ${files}`;
  const reduction =
    responseTokens !== undefined && responseTokens > tokens
      ? `, ${Math.floor((1 - tokens / responseTokens) * 100)}% less`
      : '';
  return `about ${formatTokens(tokens)}${reduction}`;
}

/** Matches headers about content, pagination, rate limits, or deprecation, which are shown first. */
const mainHeaderNames =
  /^(content-(type|length|language|range|disposition|encoding)|link|location|etag|last-modified|retry-after|allow|warning|deprecation|sunset|www-authenticate|x-(total(-count)?|next-page|page|per-page|request-id)|.*rate-?limit.*|.*request-?id)$/i;
