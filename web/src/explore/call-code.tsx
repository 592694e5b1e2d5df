import { SegmentedControl, Stack } from '@mantine/core';
import { useState } from 'react';
import { type CallCredential, callSnippets } from '../../../src/domain/snippets/call-snippets.ts';
import type { JsonObject, ServerRecord } from '../answers.ts';
import { useServer } from '../servers/server-queries.ts';
import { Folded } from '../ui/folded.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { Hint } from '../ui/text/hint.tsx';

type Props = { slug: string; view: string | undefined; tool: string; args: JsonObject };

/** Code for a call, as an MCP request and in several languages. */
export function CallCode(props: Props) {
  return (
    <Folded label="Copy as MCP request or code">
      <Forms {...props} />
    </Folded>
  );
}

function Forms({ slug, view, tool, args }: Props) {
  const query = useServer(slug);
  const [form, setForm] = useState('mcp');
  return (
    <Loaded query={query}>
      {({ server }) => {
        const url = view === undefined ? server.url : `${server.url}/${view}`;
        const snippets = callSnippets({ url, tool, arguments: args, credential: credentialOf(server) });
        const shown = snippets.find(({ id }) => id === form);
        return (
          <Stack gap="xs" align="stretch">
            <SegmentedControl
              size="xs"
              fullWidth
              aria-label="Call format"
              value={form}
              onChange={setForm}
              data={snippets.map(({ id, title }) => ({ value: id, label: title }))}
            />
            {shown && <CodeBlock code={shown.code} label={`call as ${shown.title}`} />}
            {shown && shown.needs !== '' && <Hint>{shown.needs}</Hint>}
          </Stack>
        );
      }}
    </Loaded>
  );
}

function credentialOf({ access, open }: ServerRecord): CallCredential {
  if (access === 'api_key') return 'api_key';
  if (access === 'caller_token') return open ? 'none' : 'caller_token';
  return 'login';
}
