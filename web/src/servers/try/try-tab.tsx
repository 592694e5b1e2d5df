import { SimpleGrid, Stack } from '@mantine/core';
import { IconTool } from '@tabler/icons-react';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import type { JsonObject } from '../../answers.ts';
import { api } from '../../api.ts';
import { queryKeys } from '../../query-keys.ts';
import { Empty } from '../../ui/empty.tsx';
import { isSame, refusalOf } from '../../ui/refusal.ts';
import { useAction } from '../../ui/use-action.ts';
import { isDisabled, textOf, toolsOf } from '../config.ts';
import { useShownServer } from '../server-page.tsx';
import { argumentsOf, type Typed, valuesOf } from './arguments.ts';
import { Outgoing, usePreview } from './outgoing.tsx';
import { TriedResult } from './tried-result.tsx';
import { TryForm } from './try-form.tsx';

/** Calls a tool for real and shows everything about it. */
export function TryTab() {
  const detail = useShownServer();
  const all = toolsOf(detail.config);
  const tools = all.filter((tool) => !isDisabled(tool));
  const [search, setSearch] = useSearchParams();
  const chosen = tools.find(({ name }) => name === search.get('tool')) ?? tools[0];
  if (!chosen) {
    return (
      <div className="th-card">
        <Empty
          icon={<IconTool size={24} />}
          title="Nothing to try yet"
          text={
            all.length === 0
              ? 'Add a tool under Configuration first.'
              : 'Every tool is disabled. Enable one under Configuration first.'
          }
        />
      </div>
    );
  }
  const choose = (name: string) => setSearch({ tool: name }, { replace: true });
  return (
    <TryTool key={textOf(chosen.name)} tool={chosen} names={tools.map(({ name }) => textOf(name))} onChoose={choose} />
  );
}

/** A tool as it was when it was tried, and the arguments that were sent. */
type Asked = { tool: JsonObject; body: JsonObject };

type Props = { tool: JsonObject; names: string[]; onChoose: (name: string) => void };

function TryTool({ tool, names, onChoose }: Props) {
  const { server, config } = useShownServer();
  const [typed, setTyped] = useState<Typed>({});
  const [token, setToken] = useState('');
  const name = textOf(tool.name);
  const args = argumentsOf(tool.input_schema);
  const values = valuesOf(args, typed);
  const asked: Asked = { tool, body: { arguments: values, ...(token !== '' && { token }) } };
  const call = useAction({
    run: ({ body }: Asked) => api('callTool', { slug: server.slug, tool: name, ...body }),
    refresh: [['calls'], queryKeys.activity],
  });
  const missing = args.filter((argument) => argument.isRequired && values[argument.name] === undefined);
  const isMissing = missing.length > 0;
  const preview = usePreview({ slug: server.slug, version: server.version, tool: name, values, isMissing });
  const [isAsked, setAsked] = useState(false);
  const problems = [
    ...missing.map((argument) => ({ path: `arguments.${argument.name}`, message: 'is missing' })),
    ...preview.problems,
  ];
  const refusal = refusalOf(call, asked);
  const ask = () => {
    setAsked(true);
    if (problems.length === 0 || (preview.isBehind && !isMissing)) call.mutate(asked);
  };
  const isForwarding = server.access !== 'api_key' && config.authentication !== undefined;
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
      <Stack gap="md" miw={0}>
        <TryForm
          names={names}
          name={name}
          description={textOf(tool.description)}
          args={args}
          typed={typed}
          problems={[...(isAsked ? problems : []), ...refusal.problems]}
          failure={refusal.failure}
          isCalling={call.isPending}
          token={isForwarding || server.access === 'oauth' || server.access === 'passthrough' ? token : undefined}
          onToken={setToken}
          onType={(argument, value) => setTyped((before) => ({ ...before, [argument]: value }))}
          onChoose={onChoose}
          onCall={ask}
        />
      </Stack>
      <Stack gap="md" miw={0}>
        <Outgoing preview={preview} />
        {call.data && call.variables && (
          <TriedResult
            tried={call.data}
            tool={call.variables.tool}
            slug={server.slug}
            isOfOthers={!isSame(call.variables, asked)}
          />
        )}
      </Stack>
    </SimpleGrid>
  );
}
