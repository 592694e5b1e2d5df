import { Select, Stack, TextInput } from '@mantine/core';
import type { ImportPlan } from '../../api-types.ts';
import { type FormErrors, getFieldError } from '../../ui/actions/form-errors.ts';
import { usePress } from '../../ui/actions/press.ts';
import { SecretInput } from '../../ui/secret-input.tsx';
import { Section } from '../../ui/section.tsx';
import { toVisible } from '../../ui/text/visible.ts';

/** Answers by question name. */
export type Answers = { readonly [name: string]: string };

export type Question = ImportPlan['questions'][number];

type Props = {
  questions: readonly Question[];
  answers: Answers;
  onAnswers: (answers: Answers) => void;
  /** Called when an answer is complete: an option was chosen, or a text field was left. */
  onAnswered?: (answers: Answers) => void;
  formErrors?: FormErrors;
};

const noErrors: FormErrors = { problems: [], failure: undefined };

/** Questions that the description leaves open, such as the URL, the credential, or a client ID. */
export function QuestionsForm({ questions, answers, onAnswers, onAnswered, formErrors = noErrors }: Props) {
  const { beforeClick } = usePress();
  if (questions.length === 0) return null;
  return (
    <Section title="Questions" isTitleHidden={questions.length === 1}>
      <Stack gap="sm">
        {questions.map((question) => {
          const { name, options = [], assumed = '' } = question;
          const change = (text: string) => onAnswers({ ...answers, [name]: text });
          const [label = '', hint] = toVisible(question.question).split(/(?<=\?) /, 2);
          const field = {
            label,
            description: hint,
            error:
              getFieldError(formErrors, `answers.${name}`) ?? (name === 'server' && getFieldError(formErrors, name)),
          };
          if (options.length === 0) {
            const Input = /secret/.test(name) ? SecretInput : TextInput;
            return (
              <Input
                key={name}
                {...field}
                onBlur={() => beforeClick(() => onAnswered?.(answers))}
                value={answers[name] ?? assumed}
                onChange={(event) => change(event.currentTarget.value)}
              />
            );
          }
          const answer = answers[name] ?? findOption(options, assumed)?.value ?? null;
          const option = answer === null ? undefined : findOption(options, answer);
          // An option such as header:NAME needs a name.
          const prefix = option?.value.endsWith(':NAME') ? option.value.slice(0, -'NAME'.length) : undefined;
          return (
            <Stack key={name} gap="xs">
              <Select
                {...field}
                data={options.map(({ value, meaning }) => ({
                  value,
                  label: toVisible(meaning === '' ? value : meaning.replace(/^[a-z]+(?= )/, capitalize)),
                }))}
                value={option?.value ?? null}
                placeholder={assumed}
                onChange={(chosen) => {
                  const next = { ...answers, [name]: (chosen ?? '').replace(/:NAME$/, ':X-API-Key') };
                  onAnswers(next);
                  onAnswered?.(next);
                }}
              />
              {prefix !== undefined && answer !== null && (
                <TextInput
                  label={prefix === 'header:' ? 'Header name' : 'Parameter name'}
                  value={answer.slice(prefix.length)}
                  onChange={(event) => change(prefix + event.currentTarget.value)}
                  onBlur={() => beforeClick(() => onAnswered?.(answers))}
                />
              )}
            </Stack>
          );
        })}
      </Stack>
    </Section>
  );
}

const capitalize = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

/** Finds the option of an answer: the option itself, the one that the answer completes, or the one with its address. */
function findOption(options: NonNullable<Question['options']>, answer: string) {
  return (
    options.find(({ value }) => value === answer) ??
    options.find(({ value }) => value.endsWith(':NAME') && answer.startsWith(value.slice(0, -'NAME'.length))) ??
    options.find(({ meaning }) => answer !== '' && meaning.startsWith(answer))
  );
}

export function removeEmptyAnswers(answers: Answers): Answers {
  return Object.fromEntries(Object.entries(answers).filter(([, answer]) => answer !== ''));
}
