import { Alert, Stack, Text } from '@mantine/core';
import { IconTool } from '@tabler/icons-react';
import { useSearchParams } from 'react-router';
import type { JsonObject } from '../../answers.ts';
import { Empty } from '../../ui/states/empty.tsx';
import { Loading } from '../../ui/states/loading.tsx';
import { visible } from '../../ui/text/visible.ts';
import { isDisabled, textOf, toolsOf } from '../config.ts';
import { useShownServer } from '../server-page.tsx';
import { TryTool } from './try-tool.tsx';
import { useReplay } from './use-replay.ts';

/** Calls a tool for real and shows everything about it. */
export function TryTab() {
  const detail = useShownServer();
  const all = toolsOf(detail.config);
  const tools = all.filter((tool) => !isDisabled(tool));
  const [search, setSearch] = useSearchParams();
  if (tools.length === 0) {
    return (
      <div className="th-card">
        <Empty
          icon={<IconTool size={24} />}
          title="Nothing to try yet"
          text={
            all.length === 0 ? 'Add a tool under Tools first.' : 'Every tool is disabled. Enable one under Tools first.'
          }
        />
      </div>
    );
  }
  return (
    <Chosen
      tools={tools}
      wanted={search.get('tool')}
      replayId={search.get('replay')}
      onChoose={(name) => setSearch({ tool: name }, { replace: true })}
    />
  );
}

type ChosenProps = {
  tools: readonly JsonObject[];
  wanted: string | null;
  replayId: string | null;
  onChoose: (name: string) => void;
};

/** The tool that the address names, with the arguments of a recorded call where it names one. */
function Chosen({ tools, wanted, replayId, onChoose }: ChosenProps) {
  const { server } = useShownServer();
  const replay = useReplay(server.slug, replayId);
  if (replay.isLoading) return <Loading />;
  const { replayed } = replay;
  const tool = tools.find(({ name }) => name === (replayed?.tool ?? wanted));
  const isGone = replayed !== undefined && tool === undefined;
  const refusal = isGone ? `Its tool ${visible(replayed.tool)} is disabled or gone.` : replay.refusal;
  const chosen = tool ?? (tools[0] as JsonObject);
  const name = textOf(chosen.name);
  return (
    <Stack gap="md">
      {refusal !== undefined && (
        <Alert color="yellow" title="The call cannot be replayed">
          <Text size="sm">{refusal}</Text>
        </Alert>
      )}
      <TryTool
        key={`${name} ${replayed?.id}`}
        tool={chosen}
        names={tools.map((one) => textOf(one.name))}
        replayed={isGone ? undefined : replayed}
        onChoose={onChoose}
      />
    </Stack>
  );
}
