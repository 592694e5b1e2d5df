import { Alert, Badge, Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { ImportAgainPlan } from '../../answers.ts';
import { api } from '../../api.ts';
import { queryKeys } from '../../query-keys.ts';
import { isSame, type Refusal, refusalOf } from '../../ui/actions/refusal.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Folded } from '../../ui/folded.tsx';
import { Section } from '../../ui/section.tsx';
import { ProblemAlert, sentence } from '../../ui/states/problem-alert.tsx';
import { selectorsOf } from '../import/picking.ts';
import { type Answers, QuestionsForm } from '../import/questions-form.tsx';
import type { Source } from '../import/source-form.tsx';
import { Conflicts } from './conflicts.tsx';
import { ChangedTools, FieldChanges } from './field-changes.tsx';
import { GoneTools, NewOperations } from './operations.tsx';

type Props = { plan: ImportAgainPlan; source: Source; version: number; onStored: (version: number) => void };

/** What people choose: conflicts in which the description is right, operations to add, answers. A review is of one version. */
type Wanted = { take: string[]; add: string[]; answers: Answers; expected_version: number };

const followed = { before: 'Now', after: 'Then' };

/** What importing again would do, the choices that it leaves, and the review before it is stored. */
export function Merge({ plan, source, version, onStored }: Props) {
  const [taken, setTaken] = useState<ReadonlySet<string>>(new Set());
  const [added, setAdded] = useState<ReadonlySet<string>>(new Set());
  const [answers, setAnswers] = useState<Answers>({});
  const given = Object.fromEntries(Object.entries(answers).filter(([, answer]) => answer !== ''));
  const wanted: Wanted = {
    take: [...taken],
    add: selectorsOf(plan.offered, added),
    answers: given,
    expected_version: version,
  };
  const asked = { slug: plan.slug, ...source, expected_document: plan.document_hash };
  const review = useAction({
    run: (chosen: Wanted) => api('importAgain', { ...asked, ...chosen, mode: 'plan', offered: 'new' }),
  });
  const apply = useAction({
    run: (chosen: Wanted) => api('importAgain', { ...asked, ...chosen, mode: 'apply', offered: 'new' }),
    refresh: [queryKeys.servers],
    onDone: ({ changed_server: changed }) => changed && onStored(changed.server.version),
  });
  const reviewed = review.data && isSame(review.variables, wanted) ? review.data : undefined;
  const { counts } = plan;
  return (
    <>
      <Summary plan={plan} />
      <Conflicts plan={plan} taken={taken} onTaken={setTaken} />
      <Following plan={plan} />
      <GoneTools plan={plan} />
      <NewOperations plan={plan} chosen={added} onChosen={setAdded} />
      {counts.edits > 0 && (
        <Section
          title="Your edits that stay"
          text="Here the server differs from the description, and goes on to do so."
        >
          <Folded label={counts.edits === 1 ? 'Show the value' : `Show the ${counts.edits} values`}>
            <ChangedTools
              changes={plan.edits}
              count={plan.edits.length}
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
          </Group>
          <Refused refusal={refusalOf(review, wanted)} />
          {reviewed && <Reviewed plan={reviewed} isPending={apply.isPending} onApply={() => apply.mutate(wanted)} />}
          {apply.data?.unchanged && isSame(apply.variables, wanted) && <Text size="sm">Nothing changes.</Text>}
          <Refused refusal={refusalOf(apply, wanted)} />
        </Stack>
      </Section>
    </>
  );
}

function Summary({ plan: { title, counts, same_document: isSameDocument } }: { plan: ImportAgainPlan }) {
  const parts: [number, string, string][] = [
    [counts.changed - counts.gone, counts.changed - counts.gone === 1 ? 'tool changes' : 'tools change', 'blue'],
    [counts.conflicts, counts.conflicts === 1 ? 'conflict' : 'conflicts', 'yellow'],
    [counts.new, counts.new === 1 ? 'new operation' : 'new operations', 'green'],
    [counts.moved, 'moved', 'blue'],
    [counts.gone, 'gone', 'red'],
    [counts.edits, counts.edits === 1 ? 'edit stays' : 'edits stay', 'gray'],
    [counts.unchanged, 'unchanged', 'gray'],
  ];
  return (
    <Section title="What has changed" text={sentence(title)}>
      <Stack gap="sm">
        <Group gap="xs" role="status" aria-label="Summary of the changes">
          {parts.map(([count, word, color]) => (
            <Badge key={word} color={count > 0 ? color : 'gray'} variant="light">
              {count.toLocaleString('en')} {word}
            </Badge>
          ))}
        </Group>
        {isSameDocument && <Text size="sm">The description is the same as at the last import.</Text>}
      </Stack>
    </Section>
  );
}

function Following({ plan: { changed, counts, server, gone } }: { plan: ImportAgainPlan }) {
  const isGone = new Set(gone);
  const following = changed.filter(({ tool }) => !isGone.has(tool));
  const count = counts.changed - counts.gone;
  if (count === 0 && server.length === 0) return null;
  return (
    <Section title="Tools that follow the description" text="Nobody has edited these values.">
      <Stack gap="sm">
        {server.length > 0 && <FieldChanges changes={server} signs={followed} />}
        <ChangedTools changes={following} count={count} of="tools that change" signs={followed} />
      </Stack>
    </Section>
  );
}

type ReviewedProps = { plan: ImportAgainPlan; isPending: boolean; onApply: () => void };

function Reviewed({ plan: { changed, counts, server, added }, isPending, onApply }: ReviewedProps) {
  const total = counts.changed + counts.added + server.length;
  return (
    <Stack gap="sm">
      <Text size="sm" role="status">
        {total === 0
          ? 'No tool changes.'
          : `Tools that change: ${counts.changed - counts.gone}, are added: ${counts.added}, are disabled: ${counts.gone}.`}
      </Text>
      {server.length > 0 && <FieldChanges changes={server} signs={followed} />}
      {counts.changed > 0 && (
        <Folded label={`Show the changes of ${counts.changed} ${counts.changed === 1 ? 'tool' : 'tools'}`}>
          <ChangedTools changes={changed} count={counts.changed} of="reviewed changes" signs={followed} />
        </Folded>
      )}
      {added.length > 0 && (
        <Text size="sm">
          Added: {added.slice(0, 50).join(', ')}
          {added.length > 50 && ' and more'}.
        </Text>
      )}
      <Group>
        <Button onClick={onApply} loading={isPending}>
          Store as one new version
        </Button>
      </Group>
    </Stack>
  );
}

function Refused({ refusal: { problems, failure } }: { refusal: Refusal }) {
  if (failure) return <ProblemAlert error={failure} title="Nothing was stored" />;
  if (problems.length === 0) return null;
  return (
    <Alert color="red" role="alert" title="Nothing was stored">
      {problems.map(({ path, message }) => (
        <div key={`${path} ${message}`}>{sentence(path === '' ? message : `${path}: ${message}`)}</div>
      ))}
    </Alert>
  );
}
