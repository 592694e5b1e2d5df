import { useQuery } from '@tanstack/react-query';
import type { CallDetail, JsonObject } from '../../answers.ts';
import { ApiProblem, api } from '../../api.ts';
import { queryKeys } from '../../query-keys.ts';
import { messageOf } from '../../ui/states/problem-alert.tsx';

/** A recorded call that is to be tried again. */
export type Replayed = { id: string; tool: string; at: string; view: string | undefined; args: JsonObject };

/** The recorded call that the address of the page names, or why it cannot be replayed. */
export type Replay = { isLoading: true } | { isLoading: false; replayed?: Replayed; refusal?: string };

export function useReplay(slug: string, id: string | null): Replay {
  const query = useQuery({
    queryKey: queryKeys.call(id ?? ''),
    queryFn: ({ signal }) => api('getCall', { id: id ?? '' }, { signal }),
    enabled: id !== null,
    staleTime: 60_000,
  });
  if (id === null) return { isLoading: false };
  if (query.data) return replayOf(slug, query.data);
  if (query.error) return { isLoading: false, refusal: whyNotRead(query.error) };
  return { isLoading: true };
}

function whyNotRead(error: Error): string {
  const isGone = error instanceof ApiProblem && error.status === 404;
  return isGone ? 'There is no such call any more.' : messageOf(error);
}

function replayOf(slug: string, { call, capture }: CallDetail): Replay {
  if (call.server !== slug) return { isLoading: false, refusal: 'The call was of another server.' };
  if (!capture) return { isLoading: false, refusal: 'What the call sent is not kept any more, or was never captured.' };
  if (!capture.arguments) return { isLoading: false, refusal: 'The arguments were too long to be kept.' };
  const { id, tool, at, view } = call;
  return { isLoading: false, replayed: { id, tool, at, view, args: capture.arguments } };
}
