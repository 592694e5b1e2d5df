import { Alert, Button, Group, List, Stack, Text } from '@mantine/core';
import type { ImportPlan } from '../../answers.ts';
import type { Refusal } from '../../ui/actions/refusal.ts';
import { SecretInput } from '../../ui/secret-input.tsx';
import { Section } from '../../ui/section.tsx';
import { ProblemAlert, sentence } from '../../ui/states/problem-alert.tsx';

export type SecretValues = { [name: string]: string };

type Props = {
  plan: ImportPlan;
  secrets: SecretValues;
  onSecrets: (secrets: SecretValues) => void;
  onCreate: () => void;
  isCreating: boolean;
  refusal: Refusal;
};

/** The credentials by name, what to know, and the button that creates the server. */
export function Review({ plan, secrets, onSecrets, onCreate, isCreating, refusal: { problems, failure } }: Props) {
  const open = plan.questions.filter(({ required }) => required);
  const remarks = [...plan.notes, ...plan.findings.slice(0, 10).map(({ at, message }) => `${at}: ${message}`)];
  const faults = problems.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  return (
    <Section
      title="Credentials and review"
      text={`${plan.chosen.tools} tools, about ${plan.chosen.tokens.toLocaleString('en')} tokens in every conversation.`}
    >
      <Stack gap="sm">
        {open.length > 0 && (
          <Alert color="yellow" title="Answer first">
            {open.map(({ name, question }) => (
              <div key={name}>{sentence(question)}</div>
            ))}
          </Alert>
        )}
        {plan.secrets.map(({ name, description }) => (
          <SecretInput
            key={name}
            label={name}
            description={`${sentence(description)} Sealed, and sent only to the hosts of the tools. Can be set later.`}
            value={secrets[name] ?? ''}
            onChange={(event) => onSecrets({ ...secrets, [name]: event.currentTarget.value })}
            autoComplete="new-password"
          />
        ))}
        {plan.secrets.length === 0 && open.length === 0 && (
          <Text size="sm" c="dimmed">
            No credential has to be stored.
          </Text>
        )}
        {remarks.length > 0 && (
          <List size="sm">
            {remarks.map((remark) => (
              <List.Item key={remark}>{sentence(remark)}</List.Item>
            ))}
          </List>
        )}
        {failure && <ProblemAlert error={failure} title="The server was not created" />}
        {faults.length > 0 && (
          <Alert color="red" role="alert" title="The server was not created">
            {faults.map((fault) => (
              <div key={fault}>{sentence(fault)}</div>
            ))}
          </Alert>
        )}
        <Group>
          <Button onClick={onCreate} loading={isCreating} disabled={open.length > 0 || plan.chosen.tools === 0}>
            Create the server
          </Button>
        </Group>
      </Stack>
    </Section>
  );
}
