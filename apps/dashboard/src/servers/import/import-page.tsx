import { Button, Group, List, Stack, Text, TextInput } from '@mantine/core';
import { getSlugProblem } from '@toolhost/tool-config/slug';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { api } from '../../api.ts';
import type { FieldProblem, ImportPlan } from '../../api-types.ts';
import { queryKeys } from '../../query-keys.ts';
import { getFieldError, getFormErrors, getFormErrorText, isEqual } from '../../ui/actions/form-errors.ts';
import { usePress } from '../../ui/actions/press.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Form } from '../../ui/form.tsx';
import { SecretInput } from '../../ui/secret-input.tsx';
import { Section } from '../../ui/section.tsx';
import { FormErrorAlert } from '../../ui/states/form-error-alert.tsx';
import { toSentence } from '../../ui/states/problem-alert.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { TwoColumns } from '../../ui/two-columns.tsx';
import { toSlug } from '../config.ts';
import type { NotStored } from '../connect/connect-tab.tsx';
import { NewPage } from '../new/new-server-page.tsx';
import { useFreeSlug } from '../use-free-slug.ts';
import { Operations, type Selection, sumTokens, toSelectors } from './operations.tsx';
import { type Answers, type Question, QuestionsForm, removeEmptyAnswers } from './questions-form.tsx';
import { type Source, SourceForm } from './source-form.tsx';

export function ImportPage() {
  return (
    <NewPage
      title="Import an API"
      guide="docs/import.md"
      text="Turn an API description into a server: choose operations, enter the credential, connect."
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
  const readErrors = getFormErrors(read, read.variables ?? {});
  return (
    <Stack gap="md" maw={640}>
      <SourceForm
        title="API description"
        readSource={source}
        onRead={(from) => read.mutate({ ...from, ...(purpose.trim() !== '' && { for: purpose.trim() }) })}
        isReading={read.isPending}
        formErrors={readErrors}
      >
        <TextInput
          label="What should agents do with it?"
          description="Optional, in English. Matching operations are suggested."
          placeholder="Triage issues"
          value={purpose}
          error={getFieldError(readErrors, 'for')}
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

type ImportInput = Source & { include: string[]; answers: Answers; name: string; slug: string };

const maxNameLength = 100;

/** State of the choices that turn a description into a server. */
function useChoices(source: Source, plan: ImportPlan) {
  const title = plan.title.slice(0, maxNameLength - ' 20'.length);
  const [chosen, setChosen] = useState(() => getProposedTools(plan));
  const [answers, setAnswers] = useState<Answers>({});
  const [editedName, setName] = useState<string>();
  const [editedSlug, setSlug] = useState<string>();
  const [leftSlug, leaveSlug] = useState('');
  const [secrets, setSecrets] = useState<Answers>({});
  const [isSubmitted, setSubmitted] = useState(false);
  // An answer may require another credential or further questions. Questions that were answered stay.
  const replan = useAction({ run: (asked: ImportInput) => api('importApi', { ...asked, mode: 'plan' }) });
  const latest = replan.data ?? plan;
  const isAsked = (question: Question) => plan.questions.some((known) => known.name === question.name);
  const questions = [...plan.questions, ...latest.questions.filter((question) => !isAsked(question))];
  const ownSlug = (editedName === undefined && latest.defaults?.slug) || toSlug(editedName ?? title);
  const proposed = useFreeSlug(ownSlug).freeSlug;
  const checked = useFreeSlug(leftSlug).freeSlug;
  const name = editedName ?? title + (proposed?.nameSuffix ?? '');
  const slug = editedSlug ?? proposed?.slug ?? ownSlug;
  const slugNote = [proposed, checked].find((found) => found?.requested === (editedSlug ?? ownSlug))?.note;
  const input: ImportInput = {
    ...source,
    include: toSelectors(plan.report, chosen),
    answers: removeEmptyAnswers(answers),
    name: name.trim(),
    slug,
  };
  const create = useCreate(secrets);
  const unanswered = questions.filter((question) => question.required && !input.answers[question.name]);
  const ownProblems = [...findProblems(input), ...unanswered.map(toProblem)];
  const createErrors = getFormErrors(create, input);
  const formErrors = {
    ...createErrors,
    problems: [...(isSubmitted ? ownProblems : []), ...getFormErrors(replan, input).problems, ...createErrors.problems],
  };
  const submit = () => {
    setSubmitted(true);
    if (ownProblems.length === 0) create.mutate(input);
  };
  const answer = (next: Answers) => {
    const asked = { ...input, answers: removeEmptyAnswers(next) };
    if (!isEqual(asked.answers, replan.variables?.answers ?? {})) replan.mutate(asked);
  };
  const values = { chosen, answers, name, slug, slugNote, isSlugEdited: editedSlug !== undefined, secrets };
  const setters = { setChosen, setAnswers, setName, setSlug, leaveSlug, setSecrets };
  return { ...values, ...setters, latest, questions, formErrors, answer, submit, isCreating: create.isPending };
}

type ChoicesState = ReturnType<typeof useChoices>;

function Choices({ source, plan }: { source: Source; plan: ImportPlan }) {
  const state = useChoices(source, plan);
  return (
    <>
      <OperationPicker plan={plan} chosen={state.chosen} onChosen={state.setChosen} />
      <QuestionsForm
        questions={state.questions}
        answers={state.answers}
        onAnswers={state.setAnswers}
        onAnswered={state.answer}
        formErrors={state.formErrors}
      />
      <ServerSection {...state} findings={plan.findings} />
    </>
  );
}

/** Name, slug, and credentials of the new server, and the button that creates it. */
function ServerSection({ findings, latest, formErrors, ...state }: ChoicesState & Pick<ImportPlan, 'findings'>) {
  const { beforeClick } = usePress();
  const remarks = [...latest.notes, ...findings.slice(0, 10).map(({ at, message }) => `${at}: ${message}`)];
  const otherErrors = { ...formErrors, problems: formErrors.problems.filter(({ path }) => !hasField(path)) };
  const baseUrl = latest.defaults?.base_url;
  return (
    <Section title="Server" text={baseUrl && `The tools call ${toVisible(baseUrl)}.`}>
      <Form onSubmit={state.submit}>
        <Stack gap="sm">
          <TwoColumns>
            <TextInput
              label="Server name"
              value={state.name}
              onChange={(event) => state.setName(event.currentTarget.value)}
              error={getFieldError(formErrors, 'name')}
            />
            <TextInput
              label="Slug"
              value={state.slug}
              onChange={(event) => state.setSlug(event.currentTarget.value)}
              onBlur={() => beforeClick(() => state.leaveSlug(state.slug))}
              description={state.isSlugEdited ? undefined : state.slugNote}
              error={getFieldError(formErrors, 'slug') ?? (state.isSlugEdited && state.slugNote)}
            />
          </TwoColumns>
          {latest.secrets.map(({ name, description }) => (
            <SecretInput
              key={name}
              {...describeSecret(name, description, baseUrl)}
              value={state.secrets[name] ?? ''}
              onChange={(event) => state.setSecrets({ ...state.secrets, [name]: event.currentTarget.value })}
            />
          ))}
          {remarks.length > 0 && (
            <List size="sm">
              {remarks.map((remark) => (
                <List.Item key={remark}>{toSentence(remark)}</List.Item>
              ))}
            </List>
          )}
          <FormErrorAlert formErrors={otherErrors} title="The server was not created" />
          <Group>
            <Button type="submit" loading={state.isCreating}>
              Create server
            </Button>
          </Group>
        </Stack>
      </Form>
    </Section>
  );
}

/** Returns the label and the hint of a secret: what it is, where it is sent, and its name. */
function describeSecret(name: string, description: string, baseUrl: string | undefined) {
  const [usage = '', text] = description.split(/: (.*)/s, 2);
  const host = / sent as /.test(usage) ? baseUrl?.replace(/^https?:\/\//, '').replace(/\/.*$/s, '') : undefined;
  const hint = `Stored encrypted as ${name}. Can be set later.`;
  return {
    label: toVisible(host === undefined ? usage : `${usage} to ${host}`),
    description: text === undefined ? hint : `${toSentence(text)} ${hint}`,
  };
}

/** Returns true if a field of the form shows the problems with this path. */
const hasField = (path: string) => /^(?:name|slug|server|answers\..*)$/.test(path);

const toProblem = ({ name }: Question): FieldProblem => ({ path: `answers.${name}`, message: 'Answer this question.' });

function findProblems({ include, name, slug }: ImportInput): FieldProblem[] {
  const problems: [path: string, message: string | false][] = [
    ['', include.length === 0 && 'Select at least one operation.'],
    ['name', name === '' && 'Enter a name.'],
    ['name', name.length > maxNameLength && `Use at most ${maxNameLength} characters.`],
    ['slug', getSlugProblem(slug) ?? false],
  ];
  return problems.flatMap(([path, message]) => (message ? [{ path, message }] : []));
}

const maxRecommendedTools = 40;
const maxRecommendedTokens = 10_000;

/** Returns the names of tools that the plan suggests. */
function getProposedTools({ report }: ImportPlan): ReadonlySet<string> {
  return new Set(report.filter(({ chosen }) => chosen).map(({ tool }) => tool));
}

/** Picker of operations by group, with the tokens of their tools in every conversation. */
function OperationPicker({ plan, chosen, onChosen }: Selection & { plan: ImportPlan }) {
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
      text={`${title} (${format}) has ${operations} operations.${operations > maxRecommendedTools ? ' Agents work best with a few dozen tools.' : ''}`}
      actions={
        <Text
          c={chosen.size > maxRecommendedTools || tokens > maxRecommendedTokens ? 'var(--th-warn)' : 'dimmed'}
          aria-live="polite"
        >
          {chosen.size} {chosen.size === 1 ? 'tool' : 'tools'}, about {tokens.toLocaleString('en')} tokens
        </Text>
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
      {remarks.some(Boolean) && (
        <Text c="dimmed" mt="sm">
          {remarks.filter(Boolean).join(' ')}
        </Text>
      )}
    </Section>
  );
}

/** Creates the server, stores the entered credentials, and opens its Connect tab, which shows those that failed. */
function useCreate(secrets: Answers) {
  const navigate = useNavigate();
  return useAction({
    run: async (input: ImportInput) => {
      const { created, secrets: needed } = await api('importApi', { ...input, mode: 'create' });
      if (!created) throw new Error('the service did not create a server');
      const { slug } = created.server;
      const notStored: NotStored[] = [];
      for (const { name } of needed) {
        if (!secrets[name]) continue;
        const store = api('setSecret', { slug, name, value: secrets[name] });
        await store.catch((error: Error) => {
          notStored.push({ name, reason: getFormErrorText({ error, variables: name }, name) ?? error.message });
        });
      }
      return { slug, notStored };
    },
    refresh: [queryKeys.servers, queryKeys.activity],
    onSuccess: ({ slug, notStored }) => navigate(`/servers/${slug}/connect`, { state: { isNew: true, notStored } }),
  });
}
