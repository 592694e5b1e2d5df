import { Button, Group, Stack, Text } from '@mantine/core';
import { formatImportChanges } from '@toolhost/server/operations/import-changes';
import { useState } from 'react';
import { api } from '../../api.ts';
import type { ReimportPlan } from '../../api-types.ts';
import { queryKeys } from '../../query-keys.ts';
import { getFormErrors, isEqual } from '../../ui/actions/form-errors.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Collapsible } from '../../ui/collapsible.tsx';
import { Section } from '../../ui/section.tsx';
import { FormErrorAlert } from '../../ui/states/form-error-alert.tsx';
import { toSentence } from '../../ui/states/problem-alert.tsx';
import { toSelectors } from '../import/operations.tsx';
import { type Answers, QuestionsForm, removeEmptyAnswers } from '../import/questions-form.tsx';
import type { Source } from '../import/source-form.tsx';
import { Changes, Conflicts, NewOperations, RemovedTools } from './changes.tsx';

type Props = {
  plan: ReimportPlan;
  source: Source;
  /** Prefix of the import, empty for the one without. */
  prefix: string;
  version: number;
  onSaved: (version: number) => void;
};

/**
 * Choices of the user: conflicts resolved in favor of the description, operations to add, and answers. They are for one
 * version of the server.
 */
type ReimportChoices = { take: string[]; add: string[]; answers: Answers; expected_version: number };

const followedLabels = { before: 'Current', after: 'New' };

/** Shows what a reimport would change, and the choices to make. */
export function Merge({ plan, source, prefix, version, onSaved }: Props) {
  const [acceptedKeys, setAcceptedKeys] = useState<ReadonlySet<string>>(new Set());
  const [added, setAdded] = useState<ReadonlySet<string>>(new Set());
  const [answers, setAnswers] = useState<Answers>({});
  const choices: ReimportChoices = {
    take: [...acceptedKeys],
    add: toSelectors(plan.offered, added),
    answers: removeEmptyAnswers(answers),
    expected_version: version,
  };
  const { counts, edits, server } = plan;
  const changed = counts.changed - counts.gone;
  const summaryItems = [
    formatImportChanges({ ...counts, changed, server: server.length }),
    ...(counts.moved > 0 ? [`${counts.moved} moved`] : []),
    `${counts.unchanged.toLocaleString('en')} unchanged`,
  ];
  return (
    <>
      <Section title="Changes" text={toSentence(plan.title)}>
        <Text role="status">
          {plan.same_document && 'The description is unchanged since the last import. '}
          {toSentence(summaryItems.filter(Boolean).join(', '))}
        </Text>
      </Section>
      <Conflicts plan={plan} acceptedKeys={acceptedKeys} onAcceptedKeys={setAcceptedKeys} />
      {(changed > 0 || server.length > 0) && (
        <Section title="Updated tools" text="You did not edit these values, so they are updated from the description.">
          <Changes
            server={server}
            tools={plan.changed.filter(({ tool }) => !plan.gone.includes(tool))}
            count={changed}
            noun="updated tools"
            labels={followedLabels}
          />
        </Section>
      )}
      <RemovedTools plan={plan} />
      <NewOperations plan={plan} chosen={added} onChosen={setAdded} />
      {counts.edits > 0 && (
        <Section title="Kept edits" text="These differences from the description will be kept.">
          <Collapsible label={counts.edits === 1 ? 'Show value' : `Show ${counts.edits} values`}>
            <Changes
              tools={edits}
              count={edits.length}
              noun="tools with edits"
              labels={{ before: 'Description', after: 'Yours' }}
            />
          </Collapsible>
        </Section>
      )}
      <QuestionsForm
        questions={plan.questions.filter(({ required }) => required)}
        answers={answers}
        onAnswers={setAnswers}
      />
      <Review
        request={{ slug: plan.slug, prefix, ...source, expected_document: plan.document_hash }}
        choices={choices}
        onSaved={onSaved}
      />
    </>
  );
}

type ReviewProps = {
  request: Source & { slug: string; prefix: string; expected_document: string };
  choices: ReimportChoices;
  onSaved: (version: number) => void;
};

/** Preview of the version that these choices would store. */
function Review({ request, choices, onSaved }: ReviewProps) {
  const review = useAction({
    run: (input: ReimportChoices) => api('reimportApi', { ...request, ...input, mode: 'plan', offered: 'new' }),
  });
  const apply = useAction({
    run: (input: ReimportChoices) => api('reimportApi', { ...request, ...input, mode: 'apply', offered: 'new' }),
    refresh: [queryKeys.servers],
    onSuccess: ({ changed_server: changed }) => changed && onSaved(changed.server.version),
  });
  const reviewed = review.data && isEqual(review.variables, choices) ? review.data : undefined;
  return (
    <Section title="Review" text="Preview the changes, then save them as one new version. You can undo it.">
      <Stack gap="sm">
        <Group>
          <Button
            onClick={() => review.mutate(choices)}
            loading={review.isPending}
            variant={reviewed ? 'default' : 'filled'}
          >
            Review
          </Button>
          {reviewed && (
            <Button onClick={() => apply.mutate(choices)} loading={apply.isPending}>
              Save as new version
            </Button>
          )}
        </Group>
        <FormErrorAlert formErrors={getFormErrors(review, choices)} title="Nothing was stored" />
        <FormErrorAlert formErrors={getFormErrors(apply, choices)} title="Nothing was stored" />
        {reviewed && <Reviewed plan={reviewed} />}
        {apply.data?.unchanged && isEqual(apply.variables, choices) && <Text>No changes.</Text>}
      </Stack>
    </Section>
  );
}

const maxListed = 50;

function Reviewed({ plan: { changed, counts, server, added } }: { plan: ReimportPlan }) {
  const total = counts.changed + counts.added + server.length;
  return (
    <>
      <Text role="status">
        {total === 0
          ? 'No tool changes.'
          : `Tools changed: ${counts.changed - counts.gone}, added: ${counts.added}, disabled: ${counts.gone}.`}
      </Text>
      {total > counts.added && (
        <Collapsible label={`Show changes of ${counts.changed} ${counts.changed === 1 ? 'tool' : 'tools'}`}>
          <Changes
            server={server}
            tools={changed}
            count={counts.changed}
            noun="reviewed changes"
            labels={followedLabels}
          />
        </Collapsible>
      )}
      {added.length > 0 && (
        <Text>
          Added: {added.slice(0, maxListed).join(', ')}
          {added.length > maxListed && ' and more'}.
        </Text>
      )}
    </>
  );
}
