import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { changesText } from '../../../../src/operations/import-changes.ts';
import type { ImportAgainPlan } from '../../answers.ts';
import { api } from '../../api.ts';
import { queryKeys } from '../../query-keys.ts';
import { isSame, refusalOf } from '../../ui/actions/refusal.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Folded } from '../../ui/folded.tsx';
import { Section } from '../../ui/section.tsx';
import { sentence } from '../../ui/states/problem-alert.tsx';
import { RefusalAlert } from '../../ui/states/refusal-alert.tsx';
import { selectorsOf } from '../import/operations.tsx';
import { type Answers, given, QuestionsForm } from '../import/questions-form.tsx';
import type { Source } from '../import/source-form.tsx';
import { Changes, Conflicts, GoneTools, NewOperations } from './changes.tsx';

type Props = { plan: ImportAgainPlan; source: Source; version: number; onStored: (version: number) => void };

/**
 * User's choices: conflicts resolved in favor of the description, operations to add, and answers. A review applies to
 * one version.
 */
type Wanted = { take: string[]; add: string[]; answers: Answers; expected_version: number };

const followed = { before: 'Current', after: 'New' };

/** Shows what a reimport would change, and the choices to make. */
export function Merge({ plan, source, version, onStored }: Props) {
  const [taken, setTaken] = useState<ReadonlySet<string>>(new Set());
  const [added, setAdded] = useState<ReadonlySet<string>>(new Set());
  const [answers, setAnswers] = useState<Answers>({});
  const wanted: Wanted = {
    take: [...taken],
    add: selectorsOf(plan.offered, added),
    answers: given(answers),
    expected_version: version,
  };
  const { counts, edits, server } = plan;
  const changed = counts.changed - counts.gone;
  const parts = [
    changesText({ ...counts, changed, server: server.length }),
    ...(counts.moved > 0 ? [`${counts.moved} moved`] : []),
    `${counts.unchanged.toLocaleString('en')} unchanged`,
  ];
  return (
    <>
      <Section title="Changes" text={sentence(plan.title)}>
        <Text size="sm" role="status">
          {plan.same_document && 'The description is unchanged since the last import. '}
          {sentence(parts.filter(Boolean).join(', '))}
        </Text>
      </Section>
      <Conflicts plan={plan} taken={taken} onTaken={setTaken} />
      {(changed > 0 || server.length > 0) && (
        <Section title="Updated tools" text="These values were not edited and follow the description.">
          <Changes
            server={server}
            tools={plan.changed.filter(({ tool }) => !plan.gone.includes(tool))}
            count={changed}
            of="updated tools"
            signs={followed}
          />
        </Section>
      )}
      <GoneTools plan={plan} />
      <NewOperations plan={plan} chosen={added} onChosen={setAdded} />
      {counts.edits > 0 && (
        <Section title="Kept edits" text="These differences from the description will be kept.">
          <Folded label={counts.edits === 1 ? 'Show value' : `Show ${counts.edits} values`}>
            <Changes
              tools={edits}
              count={edits.length}
              of="tools with edits"
              signs={{ before: 'Description', after: 'Yours' }}
            />
          </Folded>
        </Section>
      )}
      <QuestionsForm
        questions={plan.questions.filter(({ required }) => required)}
        answers={answers}
        onAnswers={setAnswers}
      />
      <Review
        asked={{ slug: plan.slug, ...source, expected_document: plan.document_hash }}
        wanted={wanted}
        onStored={onStored}
      />
    </>
  );
}

type ReviewProps = {
  asked: Source & { slug: string; expected_document: string };
  wanted: Wanted;
  onStored: (version: number) => void;
};

/** Preview of the version that these choices would store. */
function Review({ asked, wanted, onStored }: ReviewProps) {
  const review = useAction({
    run: (chosen: Wanted) => api('importAgain', { ...asked, ...chosen, mode: 'plan', offered: 'new' }),
  });
  const apply = useAction({
    run: (chosen: Wanted) => api('importAgain', { ...asked, ...chosen, mode: 'apply', offered: 'new' }),
    refresh: [queryKeys.servers],
    onDone: ({ changed_server: changed }) => changed && onStored(changed.server.version),
  });
  const reviewed = review.data && isSame(review.variables, wanted) ? review.data : undefined;
  return (
    <Section title="Review" text="Preview the changes, then save them as one new version. You can undo it.">
      <Stack gap="sm">
        <Group>
          <Button
            onClick={() => review.mutate(wanted)}
            loading={review.isPending}
            variant={reviewed ? 'default' : 'filled'}
          >
            Review
          </Button>
          {reviewed && (
            <Button onClick={() => apply.mutate(wanted)} loading={apply.isPending}>
              Save as new version
            </Button>
          )}
        </Group>
        <RefusalAlert refusal={refusalOf(review, wanted)} title="Nothing was stored" />
        <RefusalAlert refusal={refusalOf(apply, wanted)} title="Nothing was stored" />
        {reviewed && <Reviewed plan={reviewed} />}
        {apply.data?.unchanged && isSame(apply.variables, wanted) && <Text size="sm">No changes.</Text>}
      </Stack>
    </Section>
  );
}

function Reviewed({ plan: { changed, counts, server, added } }: { plan: ImportAgainPlan }) {
  const total = counts.changed + counts.added + server.length;
  return (
    <>
      <Text size="sm" role="status">
        {total === 0
          ? 'No tool changes.'
          : `Tools changed: ${counts.changed - counts.gone}, added: ${counts.added}, disabled: ${counts.gone}.`}
      </Text>
      {total > counts.added && (
        <Folded label={`Show changes of ${counts.changed} ${counts.changed === 1 ? 'tool' : 'tools'}`}>
          <Changes server={server} tools={changed} count={counts.changed} of="reviewed changes" signs={followed} />
        </Folded>
      )}
      {added.length > 0 && (
        <Text size="sm">
          Added: {added.slice(0, 50).join(', ')}
          {added.length > 50 && ' and more'}.
        </Text>
      )}
    </>
  );
}
