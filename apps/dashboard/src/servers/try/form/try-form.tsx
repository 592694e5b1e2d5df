import { Button, Group, Stack, Text } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { useRef } from 'react';
import type { FieldProblem } from '../../../api-types.ts';
import { useCanEdit } from '../../../frame/session.ts';
import { SecretInput } from '../../../ui/secret-input.tsx';
import { Section } from '../../../ui/section.tsx';
import { ProblemAlert } from '../../../ui/states/problem-alert.tsx';
import { ViewerNote } from '../../../ui/states/viewer-note.tsx';
import { toVisible } from '../../../ui/text/visible.ts';
import { formatErrors } from '../../editor/field-messages.tsx';
import { Input } from '../../editor/fields.tsx';
import { getMessages } from '../../editor/model/editor-context.ts';
import type { Argument, ArgumentInputs } from './arguments.ts';

type Props = {
  description: string;
  args: readonly Argument[];
  inputs: ArgumentInputs;
  problems: readonly FieldProblem[];
  failure: Error | undefined;
  isCalling: boolean;
  /** True if Enter in a field calls the tool. A tool that is not read-only is called only by the button. */
  shouldSubmitOnEnter: boolean;
  /** Token for a server that forwards its caller's token; undefined if not needed. */
  token: string | undefined;
  onToken: (token: string) => void;
  onInput: (argument: string, value: string | string[] | undefined) => void;
  onCall: () => void;
};

export function TryForm(props: Props) {
  const {
    description,
    args,
    inputs,
    problems,
    failure,
    isCalling,
    shouldSubmitOnEnter,
    token,
    onToken,
    onInput,
    onCall,
  } = props;
  const canEdit = useCanEdit();
  const form = useRef<HTMLFormElement>(null);
  const submit = () => {
    onCall();
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
  };
  return (
    <Section title="Call" text="Sends a real request, as an agent's call would.">
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          if (shouldSubmitOnEnter) submit();
        }}
      >
        <Stack gap="sm">
          <Text size="sm" c="dimmed">
            {toVisible(description)}
          </Text>
          {args.map((argument) => (
            <ArgumentInput
              key={argument.name}
              argument={argument}
              value={inputs.get(argument.name)}
              onChange={(value) => onInput(argument.name, value)}
              errors={getMessages(problems, `arguments.${argument.name}`, true)}
            />
          ))}
          {token !== undefined && (
            <SecretInput
              label="API token"
              description="This server forwards the caller's token to the API. It is used for this call and not stored."
              value={token}
              onChange={(event) => onToken(event.currentTarget.value)}
              error={formatErrors(getMessages(problems, 'token', false))}
              autoComplete="off"
            />
          )}
          {failure && <ProblemAlert error={failure} title="Not called" />}
          <Group>
            <Button
              type={shouldSubmitOnEnter ? 'submit' : 'button'}
              onClick={shouldSubmitOnEnter ? undefined : submit}
              loading={isCalling}
              disabled={!canEdit}
              leftSection={<IconPlayerPlay size={16} />}
            >
              Call tool
            </Button>
            <ViewerNote>You can view the request but not send it.</ViewerNote>
          </Group>
        </Stack>
      </form>
    </Section>
  );
}

type InputProps = {
  argument: Argument;
  value: string | string[] | undefined;
  onChange: (value: string | string[] | undefined) => void;
  errors: readonly string[];
};

const formatOption = (option: unknown) => (typeof option === 'string' ? option : JSON.stringify(option));

/** Input for an argument, by its type. */
function ArgumentInput({ argument, value, onChange, errors }: InputProps) {
  const { name, type, description, isRequired, options, defaultValue, isTextList } = argument;
  const isJson = type === 'object' || (type === 'array' && !isTextList);
  const jsonPlaceholder = type === 'array' ? '[ … ]' : '{ … }';
  const emptyPlaceholder = isJson ? jsonPlaceholder : '';
  const texts = {
    label: toVisible(name),
    text: toVisible(description),
    isRequired,
    isMono: isJson,
    placeholder: defaultValue === undefined ? emptyPlaceholder : formatOption(defaultValue),
  };
  const edited = {
    path: name,
    id: undefined,
    value,
    errors,
    warnings: [],
    isReadOnly: false,
    touch: () => {},
    set: (next: unknown) => onChange(next as string | string[] | undefined),
  };
  if (options) {
    const choices = [...new Set(options.map(formatOption))].map((option) => ({
      value: option,
      label: toVisible(option),
    }));
    return <Input edited={edited} kind="choice" choices={choices} {...texts} />;
  }
  const textKind = isJson ? 'long' : 'text';
  return <Input edited={edited} kind={isTextList ? 'list' : textKind} {...texts} />;
}
