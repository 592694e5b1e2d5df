import { Button, Input as Field, Group, Stack, Text } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { useRef } from 'react';
import type { FieldProblem } from '../../../api-types.ts';
import { useCanEdit } from '../../../frame/session.ts';
import { Form } from '../../../ui/form.tsx';
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
  onInput: (argument: Argument, path: string, value: string | string[] | undefined) => void;
  onCall: () => void;
};

export function TryForm(props: Props) {
  const { args, inputs, problems, failure, shouldSubmitOnEnter, token } = props;
  const canEdit = useCanEdit();
  const form = useRef<HTMLFormElement>(null);
  const submit = () => {
    props.onCall();
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
  };
  return (
    <Section title="Call">
      <Form ref={form} onSubmit={() => shouldSubmitOnEnter && submit()}>
        <Stack gap="sm">
          <Text c="dimmed">{toVisible(props.description)}</Text>
          {args.map((argument) => (
            <ArgumentInput
              key={argument.name}
              argument={argument}
              inputs={inputs}
              onInput={(path, value) => props.onInput(argument, path, value)}
              problems={problems}
            />
          ))}
          {token !== undefined && (
            <SecretInput
              label="API token"
              description="This server forwards the caller's token to the API. It is used for this call and not stored."
              value={token}
              onChange={(event) => props.onToken(event.currentTarget.value)}
              error={formatErrors(getMessages(problems, 'token', false))}
            />
          )}
          {failure && <ProblemAlert error={failure} title="Not called" />}
          <Group>
            <Button
              type={shouldSubmitOnEnter ? 'submit' : 'button'}
              onClick={shouldSubmitOnEnter ? undefined : submit}
              loading={props.isCalling}
              disabled={!canEdit}
              leftSection={<IconPlayerPlay size={16} />}
            >
              Call tool
            </Button>
            <ViewerNote>You can view the request but not send it.</ViewerNote>
          </Group>
        </Stack>
      </Form>
    </Section>
  );
}

type InputProps = {
  argument: Argument;
  inputs: ArgumentInputs;
  onInput: (path: string, value: string | string[] | undefined) => void;
  problems: readonly FieldProblem[];
};

const formatOption = (option: unknown) => (typeof option === 'string' ? option : JSON.stringify(option));

/** Input for an argument, by its type. The fields of an object are indented below its name. */
function ArgumentInput({ argument, ...form }: InputProps) {
  const { inputs, onInput, problems } = form;
  const { name, path, type, description, isRequired, options, defaultValue, itemType, fields } = argument;
  const errors = getMessages(problems, `arguments.${path}`, !fields);
  if (fields)
    return (
      <Field.Wrapper
        label={toVisible(name)}
        labelElement="div"
        description={toVisible(description)}
        error={formatErrors(errors)}
      >
        <Stack gap="sm" mt="xs" className="th-nested" role="group" aria-label={toVisible(name)}>
          {fields.map((field) => (
            <ArgumentInput key={field.name} argument={field} {...form} />
          ))}
        </Stack>
      </Field.Wrapper>
    );
  const isJson = type === 'object' || (type === 'array' && itemType === undefined);
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
    path,
    id: undefined,
    value: inputs.get(path),
    errors,
    warnings: [],
    isReadOnly: false,
    touch: () => {},
    set: (next: unknown) => onInput(path, next as string | string[] | undefined),
  };
  if (options) {
    const choices = [...new Set(options.map(formatOption))].map((option) => ({
      value: option,
      label: toVisible(option),
    }));
    return <Input edited={edited} kind="choice" choices={choices} {...texts} />;
  }
  const textKind = isJson ? 'long' : 'text';
  return <Input edited={edited} kind={itemType === undefined ? textKind : 'list'} {...texts} />;
}
