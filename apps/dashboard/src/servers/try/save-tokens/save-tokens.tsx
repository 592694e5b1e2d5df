import { Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../../api.ts';
import type { Proposal } from '../../../api-types.ts';
import { formatTokens } from '../../../explore/response-and-result.tsx';
import { useCanEdit } from '../../../frame/session.ts';
import { queryKeys } from '../../../query-keys.ts';
import { useAction } from '../../../ui/actions/use-action.ts';
import { Section } from '../../../ui/section.tsx';
import { Loaded } from '../../../ui/states/loaded.tsx';
import { ProblemAlert } from '../../../ui/states/problem-alert.tsx';
import { ViewerNote } from '../../../ui/states/viewer-note.tsx';
import { TextLink } from '../../../ui/text/text-link.tsx';
import { useCurrentServer } from '../../server-page.tsx';
import { createChoice, estimateTokensLeft, toggleField, toResponseFields } from './field-choice.ts';
import { FieldRows } from './field-rows.tsx';

/** Maximum paths in `response_fields`. */
const maxPaths = 100;

/** Section to choose a tool's response fields, based on captured responses. */
export function SaveTokens({ tool }: { tool: string }) {
  const { server } = useCurrentServer();
  const [isOpen, setOpen] = useState(false);
  const query = useQuery({
    queryKey: queryKeys.responseFields(server.slug, server.version, tool),
    queryFn: ({ signal }) => api('proposeResponseFields', { slug: server.slug, tool }, { signal }),
    enabled: isOpen,
    gcTime: 0,
  });
  return (
    <Section
      title="Save tokens"
      text="See which fields of captured responses use the most tokens, and leave out those that agents do not need."
    >
      {isOpen ? (
        <Loaded query={query}>
          {(proposal) =>
            proposal.fields.length === 0 ? (
              <NoFields slug={server.slug} responseCount={proposal.answers} onRetry={() => void query.refetch()} />
            ) : (
              <Choice key={server.version} proposal={proposal} tool={tool} />
            )
          }
        </Loaded>
      ) : (
        <Button variant="default" onClick={() => setOpen(true)}>
          Measure captured responses
        </Button>
      )}
    </Section>
  );
}

function NoFields({ slug, responseCount, onRetry }: { slug: string; responseCount: number; onRetry: () => void }) {
  return (
    <Stack gap="sm" align="flex-start">
      <Text>
        {responseCount > 0
          ? 'The captured responses have no fields to choose from.'
          : 'No JSON response of this tool has been captured yet. Turn on capture, then call the tool here or from an agent.'}{' '}
        <TextLink to={`/servers/${slug}/settings/capture`} underline="always">
          Capture is under Settings
        </TextLink>
        .
      </Text>
      <Button variant="default" onClick={onRetry}>
        Measure again
      </Button>
    </Stack>
  );
}

function Choice({ proposal, tool }: { proposal: Proposal; tool: string }) {
  const { server } = useCurrentServer();
  const canEdit = useCanEdit();
  const { fields, tokens, current, proposed } = proposal;
  const [choice, choose] = useState(() => createChoice(fields, current ?? proposed));
  const paths = toResponseFields(choice);
  const remainingTokens = estimateTokensLeft(choice, tokens.whole);
  const save = useAction({
    run: (changed: { response_fields: string[] | null }) =>
      api('updateTool', { slug: server.slug, tool, expected_version: server.version, ...(changed as object) }),
    toast: () => `Saved the fields of ${tool}`,
    refresh: [queryKeys.servers],
  });
  const isEmpty = paths?.length === 0;
  const hasTooManyPaths = (paths?.length ?? 0) > maxPaths;
  return (
    <Stack gap="sm">
      <Text role="status">
        {`${formatResponseCount(proposal.answers)} of ${formatTokens(tokens.whole)} would be ${formatTokens(remainingTokens)}${formatReduction(remainingTokens, tokens.whole)}.`}
        {current && ` With the current fields they are ${formatTokens(tokens.now)}.`}
      </Text>
      <Group gap="xs">
        <Button size="compact-sm" variant="default" onClick={() => choose(createChoice(fields, undefined))}>
          Keep all
        </Button>
        {proposed && (
          <Button size="compact-sm" variant="default" onClick={() => choose(createChoice(fields, proposed))}>
            Apply suggestion
          </Button>
        )}
      </Group>
      <FieldRows
        choice={choice}
        totalTokens={tokens.whole}
        onToggle={(path) => choose((before) => toggleField(before, path))}
      />
      {save.error && <ProblemAlert error={save.error} title="Not saved" />}
      {hasTooManyPaths && (
        <Text c="var(--th-bad)">
          {paths?.length} paths are selected, but at most {maxPaths} can be saved. Keep some fields whole.
        </Text>
      )}
      <Group gap="sm">
        <Button
          onClick={() => save.mutate({ response_fields: paths ?? null })}
          loading={save.isPending}
          disabled={!canEdit || isEmpty || hasTooManyPaths}
        >
          Save fields
        </Button>
        <ViewerNote>Only editors and owners can change tools.</ViewerNote>
      </Group>
    </Stack>
  );
}

function formatResponseCount(responseCount: number): string {
  return responseCount === 1 ? 'One captured response' : `${responseCount} captured responses`;
}

function formatReduction(remainingTokens: number, totalTokens: number): string {
  const reduction = totalTokens === 0 ? 0 : Math.round((1 - remainingTokens / totalTokens) * 100);
  return reduction > 0 ? `, ${reduction}% less` : '';
}
