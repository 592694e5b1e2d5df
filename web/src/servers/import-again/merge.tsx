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

/** What people choose: conflicts in which the description is right, operations to add, answers. A review is of one version. */
type Wanted = { take: string[]; add: string[]; answers: Answers; expected_version: number };

const followed = { before: 'Now', after: 'Then' };

/** What importing again would do, and the choices that it leaves. */
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
      <Section title="What has changed" text={sentence(plan.title)}>
        <Text size="sm" role="status">
          {plan.same_document && 'The description is the same as at the last import. '}
          {sentence(parts.filter(Boolean).join(', '))}
        </Text>
      </Section>
      <Conflicts plan={plan} taken={taken} onTaken={setTaken} />
      {(changed > 0 || server.length > 0) && (
        <Section title="Tools that follow the description" text="Nobody has edited these values.">
          <Changes
            server={server}
            tools={plan.changed.filter(({ tool }) => !plan.gone.includes(tool))}
            count={changed}
            of="tools that change"
            signs={followed}
          />
        </Section>
      )}
      <GoneTools plan={plan} />
      <NewOperations plan={plan} chosen={added} onChosen={setAdded} />
      {counts.edits > 0 && (
        <Section
          title="Your edits that stay"
          text="Here the server differs from the description, and goes on to do so."
        >
          <Folded label={counts.edits === 1 ? 'Show the value' : `Show the ${counts.edits} values`}>
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

/** What these choices would store, before it is stored. */
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
    <Section title="Review" text="What is stored, as one new version that can be undone.">
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
              Store as one new version
            </Button>
          )}
        </Group>
        <RefusalAlert refusal={refusalOf(review, wanted)} title="Nothing was stored" />
        <RefusalAlert refusal={refusalOf(apply, wanted)} title="Nothing was stored" />
        {reviewed && <Reviewed plan={reviewed} />}
        {apply.data?.unchanged && isSame(apply.variables, wanted) && <Text size="sm">Nothing changes.</Text>}
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
          : `Tools that change: ${counts.changed - counts.gone}, are added: ${counts.added}, are disabled: ${counts.gone}.`}
      </Text>
      {total > counts.added && (
        <Folded label={`Show the changes of ${counts.changed} ${counts.changed === 1 ? 'tool' : 'tools'}`}>
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
