import { SegmentedControl, Stack } from '@mantine/core';
import { useState } from 'react';
import type { WireRequest } from '../api-types.ts';
import { CodeBlock } from './text/code-block.tsx';

function formatHttp({ method, url, headers, body }: WireRequest): string {
  const address = new URL(url);
  const lines = [
    `${method} ${url.slice(address.origin.length) || '/'} HTTP/1.1`,
    `Host: ${address.host}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ];
  return body === undefined ? lines.join('\n') : `${lines.join('\n')}\n\n${body}`;
}

/** HTTP request as sent over the wire, or as a curl command. */
export function RequestView({ request, curl }: { request: WireRequest; curl?: string | undefined }) {
  const [format, setFormat] = useState('HTTP');
  const isCurl = format === 'curl' && curl !== undefined;
  return (
    <Stack gap="xs" align="stretch">
      {curl !== undefined && (
        <SegmentedControl
          w={160}
          aria-label="Request format"
          value={format}
          onChange={setFormat}
          data={['HTTP', 'curl']}
        />
      )}
      <CodeBlock code={isCurl ? curl : formatHttp(request)} label={isCurl ? 'request as curl' : 'request'} />
    </Stack>
  );
}
