import { Checkbox, NumberInput, Select, Textarea, TextInput } from '@mantine/core';
import type { ChangeEvent, ReactNode } from 'react';
import { parseJson } from '../../exact-json.ts';
import { usePress } from '../../ui/actions/press.ts';
import { TagsInput } from '../../ui/tags-input.tsx';
import { visible, visibleJson } from '../../ui/text/visible.ts';
import { listOf, type PathPart, textOf } from '../config.ts';
import { errorText, Warnings } from './field-messages.tsx';
import { type Edited, useBlock, useDraft, useField } from './model/editor-context.ts';

type Texts = {
  label: string;
  text?: ReactNode;
  placeholder?: string;
  isRequired?: boolean;
  isMono?: boolean;
  isFixed?: boolean;
  /** Name for screen readers if the label is too short. */
  'aria-label'?: string | undefined;
};

/** Kind of an input. `long` is multi-line text, `list` a list of texts, `check` a checkbox. */
type Kind =
  | { kind: 'text' | 'long' | 'number' | 'list' }
  | { kind: 'json'; minRows?: number }
  | { kind: 'choice'; choices: Choices }
  /** If absent from the configuration, the value is `fallback`. */
  | { kind: 'check'; fallback?: boolean };

/** Form field as data. `at` is the path of its value within the edited object. */
export type Declared = Texts & Kind & { at: string | readonly string[] };

type At = Declared['at'];
type More = Pick<Texts, 'placeholder' | 'isRequired' | 'isMono'> & { minRows?: number };
type Choices = readonly { value: string | boolean; label: string }[];

const declare =
  (kind: 'text' | 'long' | 'number' | 'list' | 'json') =>
  (at: At, label: string, text = '', more: More = {}): Declared => ({ kind, at, label, text, ...more });

/** Helpers that declare a field of each kind: path, label, and description. */
export const declared = {
  text: declare('text'),
  long: declare('long'),
  number: declare('number'),
  list: declare('list'),
  json: declare('json'),
  choice: (at: At, label: string, text: string, choices: Choices, more: More = {}): Declared => ({
    ...{ kind: 'choice', at, label, text, choices },
    ...more,
  }),
  check: (at: At, label: string, text = '', fallback = false): Declared => ({
    kind: 'check',
    at,
    label,
    text,
    fallback,
  }),
};

/** Field of the configuration. An empty optional field is omitted from the configuration. */
export function Field({ path, ...what }: Texts & Kind & { path: readonly PathPart[] }) {
  return <Input edited={useField(path, what.kind === 'list' || what.kind === 'json')} {...what} />;
}

/** Renders the declared fields of the object at `path`, in order. */
export function Fields({ path, of }: { path: readonly PathPart[]; of: readonly Declared[] }) {
  return of.map(({ at, ...what }) => <Field key={[at].flat().join('.')} path={[...path, ...[at].flat()]} {...what} />);
}

/** Input for a value, wherever it is stored. */
export function Input({ edited, ...what }: Texts & Kind & { edited: Edited }) {
  const { value, set } = edited;
  const { isRequired = false } = what;
  const shared = sharedBy(edited, what);
  const write = ({ currentTarget }: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) =>
    set(currentTarget.value === '' && !isRequired ? undefined : currentTarget.value);
  switch (what.kind) {
    case 'text':
      return (
        <TextInput {...shared} value={textOf(value)} onChange={write} autoComplete="off" spellCheck={!what.isMono} />
      );
    case 'long':
      return <Textarea {...shared} value={textOf(value)} onChange={write} autosize minRows={2} maxRows={10} />;
    case 'choice':
      return (
        <Select
          {...shared}
          data={[...what.choices]}
          value={typeof value === 'string' || typeof value === 'boolean' ? value : null}
          onChange={(next) => set(next ?? undefined)}
          clearable={!isRequired}
          allowDeselect={!isRequired}
        />
      );
    case 'json':
      return <JsonInput edited={edited} what={what} />;
    default:
      return <OtherInput edited={edited} what={what} />;
  }
}

function OtherInput({ edited, what }: { edited: Edited; what: Texts & Kind }) {
  const { value, set } = edited;
  const { onBlur, ...shared } = sharedBy(edited, what);
  if (what.kind === 'number') {
    return (
      <NumberInput
        {...shared}
        onBlur={onBlur}
        thousandSeparator=" "
        hideControls
        value={typeof value === 'number' || typeof value === 'string' ? value : ''}
        onChange={(next) => set(next === '' ? undefined : next)}
      />
    );
  }
  if (what.kind === 'list') {
    return (
      <TagsInput
        {...shared}
        className="th-mono"
        onLeave={onBlur}
        value={listOf(value).map(textOf)}
        onChange={(next) => set(next.length > 0 ? next : undefined)}
      />
    );
  }
  const fallback = what.kind === 'check' && what.fallback === true;
  const isChecked = typeof value === 'boolean' ? value : fallback;
  const { label, description, readOnly } = shared;
  return (
    <Checkbox
      {...('id' in shared && { id: shared.id })}
      label={label}
      aria-label={what['aria-label']}
      description={description}
      checked={isChecked}
      onChange={() => set(isChecked === fallback ? !fallback : undefined)}
      disabled={readOnly}
    />
  );
}

/** JSON input for a value of the configuration. Text that does not parse stays in the field. */
function JsonInput({ edited, what }: { edited: Edited; what: Texts & { minRows?: number } }) {
  const { path, value, set, touch, errors } = edited;
  const { beforeClick } = usePress();
  const [draft, setDraft] = useDraft<{ text: string; problem?: string }>();
  useBlock(path, draft?.problem);
  const change = (text: string) => {
    try {
      set(text.trim() === '' ? undefined : parseJson(text));
      setDraft({ text });
    } catch (error) {
      setDraft({ text, problem: `invalid JSON: ${error instanceof Error ? visible(error.message) : ''}` });
    }
  };
  return (
    <Textarea
      {...sharedBy(edited, { ...what, isMono: true })}
      error={errorText(draft?.problem === undefined ? errors : [draft.problem])}
      autosize
      minRows={what.minRows ?? 3}
      maxRows={18}
      spellCheck={false}
      value={draft?.text ?? (value === undefined ? '' : visibleJson(value))}
      onChange={(event) => change(event.currentTarget.value)}
      onBlur={() => {
        touch();
        beforeClick(() => draft?.problem === undefined && setDraft(undefined));
      }}
    />
  );
}

/** Returns the props that all Mantine inputs share. */
function sharedBy({ id, isReadOnly, touch, errors, warnings }: Edited, what: Texts) {
  const name = what['aria-label'];
  return {
    ...(id !== undefined && { id }),
    ...(name !== undefined && { 'aria-label': name }),
    label: what.label,
    description: what.text,
    placeholder: what.placeholder ?? '',
    readOnly: isReadOnly || what.isFixed === true,
    withAsterisk: what.isRequired === true,
    className: what.isMono ? 'th-mono' : '',
    error: errorText(errors),
    onBlur: touch,
    inputContainer: (input: ReactNode) => (
      <>
        {input}
        <Warnings list={warnings} />
      </>
    ),
  };
}
