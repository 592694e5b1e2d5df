import { Button, Group, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import type { ImportPlan } from '../../answers.ts';
import { api } from '../../api.ts';
import { queryKeys } from '../../query-keys.ts';
import { isSame, type Refusal, refusalOf } from '../../ui/actions/refusal.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Section } from '../../ui/section.tsx';
import { ProblemAlert } from '../../ui/states/problem-alert.tsx';
import { NewPage } from '../new/new-server-page.tsx';
import { OperationPicker } from './operation-picker.tsx';
import { proposedOf, selectorsOf } from './picking.ts';
import { type Answers, QuestionsForm } from './questions-form.tsx';
import { Review, type SecretValues } from './review.tsx';
import { type Source, SourceForm } from './source-form.tsx';

export function ImportPage() {
  return (
    <NewPage
      title="Import an API"
      guide="docs/import.md"
      text="From a description to a server: choose operations, give the credentials, connect."
    >
      <ImportFlow />
    </NewPage>
  );
}

function ImportFlow() {
  const [source, setSource] = useState<Source>();
  const [plan, setPlan] = useState<ImportPlan>();
  const [purpose, setPurpose] = useState('');
  const read = useAction({
    run: (from: Wished) => api('importApi', { ...from, mode: 'plan', report: 'all' }),
    onDone: (found, { for: _, ...from }) => {
      setSource(from);
      setPlan(found);
    },
  });
  return (
    <Stack gap="md">
      <SourceForm
        title="API description"
        text="OpenAPI 3 or Swagger 2 as JSON or YAML, a Postman collection, curl commands or HAR. Nothing is stored yet."
        onRead={(from) => read.mutate({ ...from, ...(purpose.trim() !== '' && { for: purpose.trim() }) })}
        isReading={read.isPending}
        refusal={refusalOf(read, read.variables ?? {})}
      >
        <TextInput
          label="What should agents do with it?"
          description="Optional, in English: the operations that fit are proposed."
          placeholder="Triage issues"
          value={purpose}
          maxLength={500}
          onChange={(event) => setPurpose(event.currentTarget.value)}
        />
      </SourceForm>
      {plan && source && (
        <Choices key={JSON.stringify([plan.title, plan.operations, plan.proposal])} source={source} plan={plan} />
      )}
    </Stack>
  );
}

/** What is sent for the first plan. */
type Wished = Source & { for?: string };

/** What is sent to plan and to create. */
type Wanted = Source & { include: string[]; answers: Answers; name: string; slug?: string };

function Choices({ source, plan }: { source: Source; plan: ImportPlan }) {
  const [chosen, setChosen] = useState(() => proposedOf(plan));
  const [answers, setAnswers] = useState<Answers>({});
  const [name, setName] = useState(plan.title.slice(0, 100));
  const [slug, setSlug] = useState('');
  const [secrets, setSecrets] = useState<SecretValues>({});
  const wanted: Wanted = {
    ...source,
    include: selectorsOf(plan.report, chosen),
    answers: Object.fromEntries(Object.entries(answers).filter(([, answer]) => answer !== '')),
    name,
    ...(slug !== '' && { slug }),
  };
  const review = useAction({ run: (asked: Wanted) => api('importApi', { ...asked, mode: 'plan' }) });
  const create = useCreate(secrets);
  const reviewed = review.data && isSame(review.variables, wanted) ? review.data : undefined;
  return (
    <>
      <OperationPicker plan={plan} chosen={chosen} onChosen={setChosen} />
      <QuestionsForm questions={reviewed?.questions ?? plan.questions} answers={answers} onAnswers={setAnswers} />
      <Section title="Name" text="Both can be seen by agents.">
        <Group gap="sm" align="flex-start">
          <TextInput
            label="Name of the server"
            flex="1 1 14rem"
            value={name}
            maxLength={100}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <TextInput
            label="Slug"
            description="Part of its address; made from the name when empty."
            flex="1 1 14rem"
            value={slug}
            maxLength={63}
            onChange={(event) => setSlug(event.currentTarget.value)}
          />
        </Group>
        <Group mt="md">
          <Button
            onClick={() => review.mutate(wanted)}
            loading={review.isPending}
            disabled={chosen.size === 0 || name.trim() === ''}
            variant={reviewed ? 'default' : 'filled'}
          >
            Review
          </Button>
        </Group>
        <Refused refusal={refusalOf(review, wanted)} />
      </Section>
      {reviewed && (
        <Review
          plan={reviewed}
          secrets={secrets}
          onSecrets={setSecrets}
          onCreate={() => create.mutate(wanted)}
          isCreating={create.isPending}
          refusal={refusalOf(create, wanted)}
        />
      )}
    </>
  );
}

function Refused({ refusal: { problems, failure } }: { refusal: Refusal }) {
  const [first] = problems;
  const error = failure ?? (first && new Error(`${first.path}: ${first.message}`));
  return error ? <ProblemAlert error={error} title="Something has to be changed first" /> : null;
}

/** Creates the server, stores the credentials that were typed, and leads to its connection. */
function useCreate(secrets: SecretValues) {
  const navigate = useNavigate();
  return useAction({
    run: async (wanted: Wanted) => {
      const { created } = await api('importApi', { ...wanted, mode: 'create' });
      if (!created) throw new Error('the service has created nothing');
      const { slug } = created.server;
      for (const [name, value] of Object.entries(secrets))
        if (value !== '') await api('setSecret', { slug, name, value });
      return created;
    },
    done: ({ server }) => `Created ${server.name}`,
    refresh: [queryKeys.servers, queryKeys.activity],
    onDone: ({ server }) => navigate(`/servers/${server.slug}/connect`, { state: { isNew: true } }),
  });
}
