import { Alert, Badge, Button, Group, List, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { api } from '../../api.ts';
import type { ImportPlan } from '../../api-types.ts';
import { queryKeys } from '../../query-keys.ts';
import { getFormErrors, isEqual } from '../../ui/actions/form-errors.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { SecretInput } from '../../ui/secret-input.tsx';
import { Section } from '../../ui/section.tsx';
import { FormErrorAlert } from '../../ui/states/form-error-alert.tsx';
import { toSentence } from '../../ui/states/problem-alert.tsx';
import { NewPage } from '../new/new-server-page.tsx';
import { Operations, sumTokens, toSelectors } from './operations.tsx';
import { type Answers, QuestionsForm, removeEmptyAnswers } from './questions-form.tsx';
import { type Source, SourceForm } from './source-form.tsx';

export function ImportPage() {
  return (
    <NewPage
      title="Import an API"
      guide="docs/import.md"
      text="Turn an API description into a server: choose operations, enter credentials, connect."
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
    run: (from: PlanInput) => api('importApi', { ...from, mode: 'plan', report: 'all' }),
    onSuccess: (newPlan, { for: _, ...from }) => {
      setSource(from);
      setPlan(newPlan);
    },
  });
  return (
    <Stack gap="md">
      <SourceForm
        title="API description"
        text="OpenAPI 3 or Swagger 2 (JSON or YAML), a Postman, Insomnia, or Bruno collection, an .http file, curl commands, fetch calls, or HAR. Nothing is stored yet."
        onRead={(from) => read.mutate({ ...from, ...(purpose.trim() !== '' && { for: purpose.trim() }) })}
        isReading={read.isPending}
        formErrors={getFormErrors(read, read.variables ?? {})}
      >
        <TextInput
          label="What should agents do with it?"
          description="Optional, in English. Matching operations are suggested."
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

type PlanInput = Source & { for?: string };

type ImportInput = Source & { include: string[]; answers: Answers; name: string; slug?: string };

function Choices({ source, plan }: { source: Source; plan: ImportPlan }) {
  const [chosen, setChosen] = useState(() => getProposedTools(plan));
  const [answers, setAnswers] = useState<Answers>({});
  const [name, setName] = useState(plan.title.slice(0, 100));
  const [slug, setSlug] = useState('');
  const input: ImportInput = {
    ...source,
    include: toSelectors(plan.report, chosen),
    answers: removeEmptyAnswers(answers),
    name,
    ...(slug !== '' && { slug }),
  };
  const review = useAction({ run: (reviewInput: ImportInput) => api('importApi', { ...reviewInput, mode: 'plan' }) });
  const reviewedPlan = review.data && isEqual(review.variables, input) ? review.data : undefined;
  return (
    <>
      <OperationPicker plan={plan} chosen={chosen} onChosen={setChosen} />
      <QuestionsForm questions={reviewedPlan?.questions ?? plan.questions} answers={answers} onAnswers={setAnswers} />
      <Section title="Name" text="Both are visible to agents.">
        <Group gap="sm" align="flex-start">
          <TextInput
            label="Server name"
            flex="1 1 14rem"
            value={name}
            maxLength={100}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <TextInput
            label="Slug"
            description="Part of the URL. Derived from the name if empty."
            flex="1 1 14rem"
            value={slug}
            maxLength={63}
            onChange={(event) => setSlug(event.currentTarget.value)}
          />
        </Group>
        <Button
          my="md"
          onClick={() => review.mutate(input)}
          loading={review.isPending}
          disabled={chosen.size === 0 || name.trim() === ''}
          variant={reviewedPlan ? 'default' : 'filled'}
        >
          Review
        </Button>
        <FormErrorAlert formErrors={getFormErrors(review, input)} title="Fix before continuing" />
      </Section>
      <Review plan={reviewedPlan} input={input} />
    </>
  );
}

const maxRecommendedTools = 40;
const maxRecommendedTokens = 10_000;

/** Returns the names of tools that the plan suggests. */
function getProposedTools({ report }: ImportPlan): ReadonlySet<string> {
  return new Set(report.filter(({ chosen }) => chosen).map(({ tool }) => tool));
}

type PickerProps = { plan: ImportPlan; chosen: ReadonlySet<string>; onChosen: (chosen: ReadonlySet<string>) => void };

/** Picker of operations by group, with the tokens of their tools in every conversation. */
function OperationPicker({ plan, chosen, onChosen }: PickerProps) {
  const { title, format, report, groups } = plan;
  const { operations, skipped } = plan.operations;
  const tokens = sumTokens(report, chosen);
  const remarks = [
    skipped > 0 && `${skipped} cannot become tools. The command line lists the reasons.`,
    operations > report.length && `Use the command line to import ${operations - report.length} more.`,
  ];
  return (
    <Section
      title="Operations"
      text={`${title} (${format}) has ${operations} operations. Agents work best with a few dozen tools.`}
      actions={
        <Badge
          size="lg"
          color={chosen.size > maxRecommendedTools || tokens > maxRecommendedTokens ? 'yellow' : 'green'}
          aria-live="polite"
        >
          {chosen.size} {chosen.size === 1 ? 'tool' : 'tools'}, about {tokens.toLocaleString('en')} tokens
        </Badge>
      }
    >
      <Operations
        operations={report.filter(({ outcome }) => outcome !== 'skipped')}
        order={groups.map(({ name }) => name)}
        chosen={chosen}
        onChosen={onChosen}
        actions={
          <>
            <Button variant="default" onClick={() => onChosen(getProposedTools(plan))}>
              Select suggested
            </Button>
            <Button variant="default" onClick={() => onChosen(new Set())} disabled={chosen.size === 0}>
              Clear selection
            </Button>
          </>
        }
      />
      <Text size="sm" c="dimmed" mt="sm">
        {remarks.filter(Boolean).join(' ')}
      </Text>
    </Section>
  );
}

/** Credentials, remarks, and the button that creates the server. */
function Review({ plan, input }: { plan: ImportPlan | undefined; input: ImportInput }) {
  const [secrets, setSecrets] = useState<Answers>({});
  const create = useCreate(secrets);
  if (!plan) return null;
  const openQuestions = plan.questions.filter(({ required }) => required);
  const remarks = [...plan.notes, ...plan.findings.slice(0, 10).map(({ at, message }) => `${at}: ${message}`)];
  return (
    <Section
      title="Credentials and review"
      text={`${plan.chosen.tools} tools, about ${plan.chosen.tokens.toLocaleString('en')} tokens in every conversation.`}
    >
      <Stack gap="sm">
        {openQuestions.length > 0 && (
          <Alert color="yellow" title="Answer these first">
            {openQuestions.map(({ name, question }) => (
              <div key={name}>{toSentence(question)}</div>
            ))}
          </Alert>
        )}
        {plan.secrets.map(({ name, description }) => (
          <SecretInput
            key={name}
            label={name}
            description={`${toSentence(description)} Stored encrypted and sent only to the tools’ hosts. Can be set later.`}
            value={secrets[name] ?? ''}
            onChange={(event) => setSecrets({ ...secrets, [name]: event.currentTarget.value })}
            autoComplete="new-password"
          />
        ))}
        {remarks.length > 0 && (
          <List size="sm">
            {remarks.map((remark) => (
              <List.Item key={remark}>{toSentence(remark)}</List.Item>
            ))}
          </List>
        )}
        <FormErrorAlert formErrors={getFormErrors(create, input)} title="The server was not created" />
        <Group>
          <Button
            onClick={() => create.mutate(input)}
            loading={create.isPending}
            disabled={openQuestions.length > 0 || plan.chosen.tools === 0}
          >
            Create server
          </Button>
        </Group>
      </Stack>
    </Section>
  );
}

/** Creates the server, stores the entered credentials, and opens its Connect tab. */
function useCreate(secrets: Answers) {
  const navigate = useNavigate();
  return useAction({
    run: async (input: ImportInput) => {
      const { created } = await api('importApi', { ...input, mode: 'create' });
      if (!created) throw new Error('the service did not create a server');
      const { slug } = created.server;
      for (const [name, value] of Object.entries(removeEmptyAnswers(secrets)))
        await api('setSecret', { slug, name, value });
      return created;
    },
    toast: ({ server }) => `Created ${server.name}`,
    refresh: [queryKeys.servers, queryKeys.activity],
    onSuccess: ({ server }) => navigate(`/servers/${server.slug}/connect`, { state: { isNew: true } }),
  });
}
