import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { IconRepeat } from '@tabler/icons-react';
import { isNotFound } from '../../api.ts';
import type { CallDetail, JsonObject } from '../../api-types.ts';
import { queryKeys } from '../../query-keys.ts';
import { getErrorMessage } from '../../ui/states/problem-alert.tsx';
import { Time } from '../../ui/text/time.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { useOperationQuery } from '../../use-operation-query.ts';

/** Recorded call to replay. */
export type ReplayedCall = { id: string; tool: string; at: string; view: string | undefined; args: JsonObject };

/** Recorded call named in the page URL, or the reason why it cannot be replayed. */
type Replay = { isLoading: true } | { isLoading: false; replayed?: ReplayedCall; refusal?: string };

export function useReplay(slug: string, id: string): Replay {
  const query = useOperationQuery(queryKeys.call(id), 'getCall', { id }, { enabled: id !== '', staleTime: 60_000 });
  if (id === '') return { isLoading: false };
  if (query.data) return toReplay(slug, query.data);
  if (!query.error) return { isLoading: true };
  return {
    isLoading: false,
    refusal: isNotFound(query.error) ? 'The call no longer exists.' : getErrorMessage(query.error),
  };
}

function toReplay(slug: string, { call, capture }: CallDetail): Replay {
  if (call.server !== slug) return { isLoading: false, refusal: 'The call belongs to another server.' };
  if (!capture) return { isLoading: false, refusal: 'The call was not captured, or its capture has expired.' };
  if (!capture.arguments) return { isLoading: false, refusal: 'The arguments were too large to store.' };
  const { id, tool, at, view } = call;
  return { isLoading: false, replayed: { id, tool, at, view, args: capture.arguments } };
}

type NoteProps = {
  replayed: ReplayedCall;
  /** Names of arguments that are sent but have no field. */
  hiddenNames: readonly string[];
  onRemove: () => void;
};

/** Note about the recorded call whose arguments are in the form. */
export function ReplayNote({ replayed, hiddenNames, onRemove }: NoteProps) {
  const isRedacted = JSON.stringify(replayed.args).includes('[redacted]');
  return (
    <Alert color="blue" icon={<IconRepeat size={18} />} title="Arguments of a recorded call">
      <Stack gap="xs">
        <Text>
          From a call made <Time at={replayed.at} />. Nothing is sent until you call the tool.
        </Text>
        {isRedacted && <Text>Credentials were not stored. Enter them again where it says [redacted].</Text>}
        {hiddenNames.length > 0 && (
          <Group gap="sm">
            <Text>Also sent, but not in the form: {toVisible(hiddenNames.join(', '))}.</Text>
            <Button size="compact-sm" variant="default" onClick={onRemove}>
              {hiddenNames.length === 1 ? 'Remove it' : 'Remove them'}
            </Button>
          </Group>
        )}
      </Stack>
    </Alert>
  );
}
