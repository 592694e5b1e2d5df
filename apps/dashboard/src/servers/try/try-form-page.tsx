import { Alert, Stack, Text } from '@mantine/core';
import { IconTool } from '@tabler/icons-react';
import { useSearchParams } from 'react-router';
import { Empty } from '../../ui/states/empty.tsx';
import { Loading } from '../../ui/states/loading.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { asText, getTools, isDisabled } from '../config.ts';
import { MissingValuesAlert } from '../own-values.tsx';
import { useCurrentServer } from '../server-page.tsx';
import { useReplay } from './replay.tsx';
import { TryTool } from './try-tool.tsx';

/** Form that calls a tool. The URL names the tool, or a recorded call to replay. */
export function TryFormPage() {
  const { server, config } = useCurrentServer();
  const allTools = getTools(config);
  const tools = allTools.filter((tool) => !isDisabled(tool));
  const [search, setSearch] = useSearchParams();
  const replay = useReplay(server.slug, search.get('replay') ?? '');
  const [firstTool] = tools;
  if (!firstTool) {
    const text = allTools.length === 0 ? 'Add a tool' : 'All tools are disabled. Enable one';
    return (
      <div className="th-card">
        <Empty icon={<IconTool size={24} />} title="No tools to try" text={`${text} under Tools first.`} />
      </div>
    );
  }
  if (replay.isLoading) return <Loading />;
  const { replayed } = replay;
  const requestedName = replayed?.tool ?? search.get('tool');
  const tool = tools.find(({ name }) => name === requestedName);
  const isToolMissing = replayed !== undefined && tool === undefined;
  const refusal = isToolMissing
    ? `Its tool ${toVisible(replayed.tool)} is disabled or no longer exists.`
    : replay.refusal;
  const selectedTool = tool ?? firstTool;
  return (
    <Stack gap="md">
      <MissingValuesAlert />
      {refusal !== undefined && (
        <Alert color="yellow" title="The call cannot be replayed">
          <Text>{refusal}</Text>
        </Alert>
      )}
      <TryTool
        key={`${asText(selectedTool.name)} ${replayed?.id}`}
        tool={selectedTool}
        names={tools.map((candidate) => asText(candidate.name))}
        replayed={isToolMissing ? undefined : replayed}
        onChoose={(name) => setSearch({ tool: name }, { replace: true })}
      />
    </Stack>
  );
}
