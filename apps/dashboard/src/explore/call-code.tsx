import { SegmentedControl, Stack } from '@mantine/core';
import { type CallCredential, createCallSnippets } from '@toolhost/server/snippets/call-snippets';
import { useState } from 'react';
import type { JsonObject, ServerRecord } from '../api-types.ts';
import { useServer } from '../servers/server-queries.ts';
import { Collapsible } from '../ui/collapsible.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { Hint } from '../ui/text/hint.tsx';

type Props = { slug: string; view: string | undefined; tool: string; args: JsonObject };

/** Code for a call, as an MCP request and in several languages. */
export function CallCode(props: Props) {
  return (
    <Collapsible label="Copy as MCP request or code">
      <CodeFormats {...props} />
    </Collapsible>
  );
}

function CodeFormats({ slug, view, tool, args }: Props) {
  const query = useServer(slug);
  const [format, setFormat] = useState('mcp');
  return (
    <Loaded query={query}>
      {({ server }) => {
        const url = view === undefined ? server.url : `${server.url}/${view}`;
        const snippets = createCallSnippets({
          url,
          tool,
          arguments: args,
          credential: getCredential(server),
          exampleToken: server.example_token,
        });
        const snippet = snippets.find(({ id }) => id === format);
        return (
          <Stack gap="xs" align="stretch">
            <SegmentedControl
              fullWidth
              aria-label="Call format"
              value={format}
              onChange={setFormat}
              data={snippets.map(({ id, title }) => ({ value: id, label: title }))}
            />
            {snippet && <CodeBlock code={snippet.code} label={`call as ${snippet.title}`} />}
            {snippet && snippet.needs !== '' && <Hint>{snippet.needs}</Hint>}
          </Stack>
        );
      }}
    </Loaded>
  );
}

function getCredential({ access, open }: ServerRecord): CallCredential {
  if (access === 'api_key' || access === 'login') return 'api_key';
  if (access === 'caller_token') return open ? 'none' : 'caller_token';
  return 'login';
}
