import { Select, Stack, TextInput } from '@mantine/core';
import type { ImportPlan } from '../../api-types.ts';
import { SecretInput } from '../../ui/secret-input.tsx';
import { Section } from '../../ui/section.tsx';
import { toVisible } from '../../ui/text/visible.ts';

/** Answers by question name. */
export type Answers = { readonly [name: string]: string };

type Props = { questions: ImportPlan['questions']; answers: Answers; onAnswers: (answers: Answers) => void };

/** Questions that the description leaves open, such as the URL, the credential, or a client ID. */
export function QuestionsForm({ questions, answers, onAnswers }: Props) {
  if (questions.length === 0) return null;
  return (
    <Section title="Questions" text="The description does not specify these.">
      <Stack gap="sm">
        {questions.map(({ name, question, required, options = [], assumed = '' }) => {
          const value = answers[name] ?? '';
          const setAnswer = (text: string) => onAnswers({ ...answers, [name]: text });
          const field = { label: toVisible(question), withAsterisk: required, placeholder: assumed };
          if (options.length === 0) {
            const Input = /secret/.test(name) ? SecretInput : TextInput;
            return (
              <Input
                key={name}
                {...field}
                value={value}
                onChange={(event) => setAnswer(event.currentTarget.value)}
                autoComplete="new-password"
              />
            );
          }
          return (
            <Select
              key={name}
              {...field}
              data={options.map(({ value: option, meaning }) => ({
                value: option,
                label: toVisible(meaning === '' ? option : `${option}: ${meaning}`),
              }))}
              value={value || null}
              onChange={(chosen) => setAnswer(chosen ?? '')}
              clearable
            />
          );
        })}
      </Stack>
    </Section>
  );
}

export function removeEmptyAnswers(answers: Answers): Answers {
  return Object.fromEntries(Object.entries(answers).filter(([, answer]) => answer !== ''));
}
