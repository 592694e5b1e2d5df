import { Checkbox, NumberInput, Select, Textarea, TextInput } from '@mantine/core';
import type { ChangeEvent, ReactNode } from 'react';
import { parseJson } from '../../exact-json.ts';
import { usePress } from '../../ui/actions/press.ts';
import { TagsInput } from '../../ui/tags-input.tsx';
import { toVisible, toVisibleJson } from '../../ui/text/visible.ts';
import { asList, asText, type PathSegment } from '../config.ts';
import { formatErrors, Warnings, withArticle } from './field-messages.tsx';
import { type Edited, useDraft, useField, useSaveBlock } from './model/editor-context.ts';

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
  /** `fallback` is the value of a field that is absent from the configuration. */
  | { kind: 'check'; fallback?: boolean };

/** Form field as data. `subpath` is the path of its value within the edited object. */
export type FieldDeclaration = Texts & Kind & { subpath: string | readonly string[] };

type Subpath = FieldDeclaration['subpath'];
type FieldOptions = Pick<Texts, 'placeholder' | 'isRequired' | 'isMono'> & { minRows?: number };
type Choices = readonly { value: string | boolean; label: string }[];

const createDeclaration =
  (kind: 'text' | 'long' | 'number' | 'list' | 'json') =>
  (subpath: Subpath, label: string, text = '', options: FieldOptions = {}): FieldDeclaration => ({
    kind,
    subpath,
    label,
    text,
    ...options,
  });

/** Functions that declare a field of each kind. */
export const declareField = {
  text: createDeclaration('text'),
  long: createDeclaration('long'),
  number: createDeclaration('number'),
  list: createDeclaration('list'),
  json: createDeclaration('json'),
  choice: (
    subpath: Subpath,
    label: string,
    text: string,
    choices: Choices,
    options: FieldOptions = {},
  ): FieldDeclaration => ({ kind: 'choice', subpath, label, text, choices, ...options }),
  check: (subpath: Subpath, label: string, text = '', fallback = false): FieldDeclaration => ({
    kind: 'check',
    subpath,
    label,
    text,
    fallback,
  }),
};

/** Field of the configuration. An empty optional field is omitted from the configuration. */
export function Field({ path, ...field }: Texts & Kind & { path: readonly PathSegment[] }) {
  return <Input edited={useField(path, field.kind === 'list' || field.kind === 'json')} {...field} />;
}

/** Renders the declared fields of the object at `path`, in order. */
export function Fields({ path, fields }: { path: readonly PathSegment[]; fields: readonly FieldDeclaration[] }) {
  return fields.map(({ subpath, ...field }) => (
    <Field key={[subpath].flat().join('.')} path={[...path, ...[subpath].flat()]} {...field} />
  ));
}

/** Input for a value, wherever it is stored. */
export function Input({ edited, ...field }: Texts & Kind & { edited: Edited }) {
  const { value, set } = edited;
  const { isRequired = false } = field;
  const sharedProps = getSharedProps(edited, field);
  const handleChange = ({ currentTarget }: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) =>
    set(currentTarget.value === '' && !isRequired ? undefined : currentTarget.value);
  switch (field.kind) {
    case 'text':
      return <TextInput {...sharedProps} value={asText(value)} onChange={handleChange} spellCheck={!field.isMono} />;
    case 'long':
      return (
        <Textarea {...sharedProps} value={asText(value)} onChange={handleChange} autosize minRows={2} maxRows={10} />
      );
    case 'choice':
      return (
        <Select
          {...sharedProps}
          data={[...field.choices]}
          value={typeof value === 'string' || typeof value === 'boolean' ? value : null}
          onChange={(next) => set(next ?? undefined)}
          clearable={!isRequired}
          allowDeselect={!isRequired}
        />
      );
    case 'json':
      return <JsonInput edited={edited} field={field} />;
    default:
      return <OtherInput edited={edited} field={field} />;
  }
}

function OtherInput({ edited, field }: { edited: Edited; field: Texts & Kind }) {
  const { value, set } = edited;
  const { onBlur, ...sharedProps } = getSharedProps(edited, field);
  if (field.kind === 'number') {
    return (
      <NumberInput
        {...sharedProps}
        onBlur={onBlur}
        thousandSeparator=" "
        hideControls
        value={typeof value === 'number' || typeof value === 'string' ? value : ''}
        onChange={(next) => set(next === '' ? undefined : next)}
      />
    );
  }
  if (field.kind === 'list') {
    return (
      <TagsInput
        {...sharedProps}
        className="th-mono"
        onFieldBlur={onBlur}
        value={asList(value).map(asText)}
        onChange={(next) => set(next.length > 0 ? next : undefined)}
      />
    );
  }
  const fallback = field.kind === 'check' && field.fallback === true;
  const isChecked = typeof value === 'boolean' ? value : fallback;
  const { label, description, readOnly } = sharedProps;
  return (
    <Checkbox
      {...('id' in sharedProps && { id: sharedProps.id })}
      label={label}
      aria-label={field['aria-label']}
      description={description}
      checked={isChecked}
      onChange={() => set(isChecked === fallback ? !fallback : undefined)}
      disabled={readOnly}
    />
  );
}

/** JSON input for a value of the configuration. Text that does not parse stays in the field. */
function JsonInput({ edited, field }: { edited: Edited; field: Texts & { minRows?: number } }) {
  const { path, value, set, touch, errors } = edited;
  const { beforeClick } = usePress();
  const [draft, setDraft] = useDraft<{ text: string; problem?: string }>();
  useSaveBlock(path, draft?.problem);
  const change = (text: string) => {
    try {
      set(text.trim() === '' ? undefined : parseJson(text));
      setDraft({ text });
    } catch (error) {
      setDraft({ text, problem: `invalid JSON: ${error instanceof Error ? toVisible(error.message) : ''}` });
    }
  };
  return (
    <Textarea
      {...getSharedProps(edited, { ...field, isMono: true })}
      error={formatErrors(draft?.problem === undefined ? errors : [draft.problem])}
      autosize
      minRows={field.minRows ?? 3}
      maxRows={18}
      spellCheck={false}
      value={draft?.text ?? (value === undefined ? '' : toVisibleJson(value))}
      onChange={(event) => change(event.currentTarget.value)}
      onBlur={() => {
        touch();
        beforeClick(() => draft?.problem === undefined && setDraft(undefined));
      }}
    />
  );
}

function getSharedProps({ id, value, isReadOnly, touch, errors, warnings }: Edited, field: Texts) {
  const isEmpty = value === undefined || value === '';
  const name = field['aria-label'];
  return {
    ...(id !== undefined && { id }),
    ...(name !== undefined && { 'aria-label': name }),
    label: field.label,
    description: field.text,
    placeholder: field.placeholder ?? '',
    readOnly: isReadOnly || field.isFixed === true,
    required: field.isRequired === true,
    className: field.isMono ? 'th-mono' : '',
    error: formatErrors(
      isEmpty && field.isRequired && errors.length > 0 ? [`Enter ${withArticle(field.label)}.`] : errors,
    ),
    onBlur: touch,
    inputContainer: (input: ReactNode) => (
      <>
        {input}
        <Warnings list={warnings} />
      </>
    ),
  };
}
