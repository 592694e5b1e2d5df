import { Anchor, Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'react-router';
import type { Proposal } from '../../../answers.ts';
import { api } from '../../../api.ts';
import { tokenText } from '../../../explore/sides.tsx';
import { useCanEdit } from '../../../frame/session.ts';
import { queryKeys } from '../../../query-keys.ts';
import { useAction } from '../../../ui/actions/use-action.ts';
import { Section } from '../../../ui/section.tsx';
import { Loaded } from '../../../ui/states/loaded.tsx';
import { ProblemAlert } from '../../../ui/states/problem-alert.tsx';
import { ViewerNote } from '../../../ui/states/viewer-note.tsx';
import { useShownServer } from '../../server-page.tsx';
import { choiceBy, pathsOf, toggled, tokensLeft } from './field-choice.ts';
import { FieldRows } from './field-rows.tsx';

/** Maximum paths in `response_fields`. */
const mostPaths = 100;

/** Section to choose a tool's response fields, based on captured responses. */
export function SaveTokens({ tool }: { tool: string }) {
  const { server } = useShownServer();
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
              <NothingYet slug={server.slug} answers={proposal.answers} onAgain={() => void query.refetch()} />
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

function NothingYet({ slug, answers, onAgain }: { slug: string; answers: number; onAgain: () => void }) {
  return (
    <Stack gap="sm" align="flex-start">
      <Text size="sm">
        {answers > 0
          ? 'The captured responses have no fields to choose from.'
          : 'No JSON response of this tool has been captured yet. Turn on capture, then call the tool here or from an agent.'}{' '}
        <Anchor component={Link} to={`/servers/${slug}/options`} size="sm" underline="always">
          Capture is under Options
        </Anchor>
        .
      </Text>
      <Button variant="default" onClick={onAgain}>
        Measure again
      </Button>
    </Stack>
  );
}

function Choice({ proposal, tool }: { proposal: Proposal; tool: string }) {
  const { server } = useShownServer();
  const canEdit = useCanEdit();
  const { fields, tokens, current, proposed } = proposal;
  const [choice, choose] = useState(() => choiceBy(fields, current ?? proposed));
  const paths = pathsOf(choice);
  const left = tokensLeft(choice, tokens.whole);
  const save = useAction({
    run: (changed: { response_fields: string[] | null }) =>
      api('updateTool', { slug: server.slug, tool, expected_version: server.version, ...(changed as object) }),
    done: () => `Saved the fields of ${tool}`,
    refresh: [queryKeys.servers],
  });
  const isNothing = paths?.length === 0;
  const isTooMany = (paths?.length ?? 0) > mostPaths;
  return (
    <Stack gap="sm">
      <Text size="sm" role="status">
        {`${answersText(proposal.answers)} of ${tokenText(tokens.whole)} would be ${tokenText(left)}${shareText(left, tokens.whole)}.`}
        {current && ` With the current fields they are ${tokenText(tokens.now)}.`}
      </Text>
      <Group gap="xs">
        <Button size="compact-sm" variant="default" onClick={() => choose(choiceBy(fields, undefined))}>
          Keep all
        </Button>
        {proposed && (
          <Button size="compact-sm" variant="default" onClick={() => choose(choiceBy(fields, proposed))}>
            Apply suggestion
          </Button>
        )}
      </Group>
      <FieldRows choice={choice} whole={tokens.whole} onToggle={(path) => choose((before) => toggled(before, path))} />
      {save.error && <ProblemAlert error={save.error} title="Not saved" />}
      {isTooMany && (
        <Text size="sm" c="error">
          {paths?.length} paths are selected, but at most {mostPaths} can be saved. Keep some fields whole.
        </Text>
      )}
      <Group gap="sm">
        <Button
          onClick={() => save.mutate({ response_fields: paths ?? null })}
          loading={save.isPending}
          disabled={!canEdit || isNothing || isTooMany}
        >
          Save fields
        </Button>
        <ViewerNote>Only editors and owners can change tools.</ViewerNote>
      </Group>
    </Stack>
  );
}

function answersText(answers: number): string {
  return answers === 1 ? 'One captured response' : `${answers} captured responses`;
}

function shareText(left: number, whole: number): string {
  const less = whole === 0 ? 0 : Math.round((1 - left / whole) * 100);
  return less > 0 ? `, ${less}% less` : '';
}
