import { Select, Stack, TextInput } from '@mantine/core';
import type { ImportPlan } from '../../answers.ts';
import { SecretInput } from '../../ui/secret-input.tsx';
import { Section } from '../../ui/section.tsx';
import { visible } from '../../ui/text/visible.ts';

export type Answers = { [name: string]: string };

type Question = ImportPlan['questions'][number];
type Props = { questions: readonly Question[]; answers: Answers; onAnswers: (answers: Answers) => void };

/** What the description leaves open: the address, the credential, an application's id. */
export function QuestionsForm({ questions, answers, onAnswers }: Props) {
  if (questions.length === 0) return null;
  return (
    <Section title="Questions" text="The description leaves these open.">
      <Stack gap="sm">
        {questions.map((question) => (
          <Answer
            key={question.name}
            question={question}
            value={answers[question.name] ?? ''}
            onValue={(value) => onAnswers({ ...answers, [question.name]: value })}
          />
        ))}
      </Stack>
    </Section>
  );
}

type AnswerProps = { question: Question; value: string; onValue: (value: string) => void };

function Answer({ question: { name, question, required, options, assumed }, value, onValue }: AnswerProps) {
  const common = { label: visible(question), withAsterisk: required, placeholder: assumed ?? '' };
  if (options && options.length > 0) {
    return (
      <Select
        {...common}
        data={options.map((option) => ({
          value: option.value,
          label: visible(option.meaning === '' ? option.value : `${option.value}: ${option.meaning}`),
        }))}
        value={value === '' ? null : value}
        onChange={(chosen) => onValue(chosen ?? '')}
        clearable
      />
    );
  }
  const change = (event: { currentTarget: { value: string } }) => onValue(event.currentTarget.value);
  return /secret/.test(name) ? (
    <SecretInput {...common} value={value} onChange={change} autoComplete="new-password" />
  ) : (
    <TextInput {...common} value={value} onChange={change} autoComplete="off" />
  );
}
