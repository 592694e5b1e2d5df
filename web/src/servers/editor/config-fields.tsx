import { NumberInput, Select, Switch, Textarea, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { TagsInput } from '../../ui/tags-input.tsx';
import { type PathPart, textOf } from '../config.ts';
import { errorText, Warnings } from './field-messages.tsx';
import { useField } from './model/editor-context.ts';

type Props = {
  path: readonly PathPart[];
  label: string;
  text?: ReactNode;
  placeholder?: string;
  isRequired?: boolean;
  isMono?: boolean;
  isFixed?: boolean;
};

/** A line of text; an empty one that is not required is left out of the configuration. */
export function TextField({ path, label, text, placeholder = '', isRequired, isMono, isFixed }: Props) {
  const field = useField(path);
  return (
    <div>
      <TextInput
        id={field.id}
        label={label}
        description={text}
        placeholder={placeholder}
        withAsterisk={isRequired === true}
        value={textOf(field.value)}
        onChange={({ currentTarget: { value } }) => field.set(value === '' && !isRequired ? undefined : value)}
        onBlur={field.touch}
        error={errorText(field.errors)}
        readOnly={field.isReadOnly || isFixed === true}
        className={isMono ? 'th-mono' : ''}
        autoComplete="off"
        spellCheck={!isMono}
      />
      <Warnings list={field.warnings} />
    </div>
  );
}

export function LongTextField({ path, label, text, placeholder = '', isRequired }: Props) {
  const field = useField(path);
  return (
    <div>
      <Textarea
        id={field.id}
        label={label}
        description={text}
        placeholder={placeholder}
        withAsterisk={isRequired === true}
        autosize
        minRows={2}
        maxRows={10}
        value={textOf(field.value)}
        onChange={({ currentTarget: { value } }) => field.set(value === '' && !isRequired ? undefined : value)}
        onBlur={field.touch}
        error={errorText(field.errors)}
        readOnly={field.isReadOnly}
      />
      <Warnings list={field.warnings} />
    </div>
  );
}

type ChoiceProps = Props & {
  choices: readonly (string | { value: string; label: string })[];
  /** Replaces storing the value at the path. */
  onPick?: (value: string | undefined) => void;
};

export function ChoiceField({ path, label, text, placeholder = '', isRequired, choices, onPick }: ChoiceProps) {
  const field = useField(path);
  return (
    <Select
      id={field.id}
      label={label}
      description={text}
      placeholder={placeholder}
      withAsterisk={isRequired === true}
      data={[...choices]}
      value={typeof field.value === 'string' ? field.value : null}
      onChange={(value) => (onPick ?? field.set)(value ?? undefined)}
      onBlur={field.touch}
      error={errorText(field.errors)}
      clearable={!isRequired}
      allowDeselect={!isRequired}
      readOnly={field.isReadOnly}
    />
  );
}

export function NumberField({ path, label, text, placeholder = '' }: Props) {
  const field = useField(path);
  return (
    <NumberInput
      id={field.id}
      label={label}
      description={text}
      placeholder={placeholder}
      thousandSeparator=" "
      hideControls
      value={typeof field.value === 'number' || typeof field.value === 'string' ? field.value : ''}
      onChange={(value) => field.set(value === '' ? undefined : value)}
      onBlur={field.touch}
      error={errorText(field.errors)}
      readOnly={field.isReadOnly}
    />
  );
}

export function ListField({ path, label, text, placeholder = '' }: Props) {
  const field = useField(path, true);
  return (
    <TagsInput
      id={field.id}
      label={label}
      description={text}
      placeholder={placeholder}
      value={Array.isArray(field.value) ? field.value.map(textOf) : []}
      onChange={(value) => field.set(value.length > 0 ? value : undefined)}
      onLeave={field.touch}
      error={errorText(field.errors)}
      readOnly={field.isReadOnly}
      className="th-mono"
    />
  );
}

/** A switch whose absence in the configuration means `fallback`. */
export function SwitchField({ path, label, text, fallback }: Props & { fallback: boolean }) {
  const field = useField(path);
  return (
    <Switch
      id={field.id}
      label={label}
      description={text}
      checked={typeof field.value === 'boolean' ? field.value : fallback}
      onChange={({ currentTarget: { checked } }) => field.set(checked === fallback ? undefined : checked)}
      disabled={field.isReadOnly}
    />
  );
}

const hintChoices = [
  { value: 'true', label: 'Yes' },
  { value: 'false', label: 'No' },
];

/** A hint that is derived from the method when it is absent. */
export function HintField({ path, label }: Props) {
  const field = useField(path);
  return (
    <Select
      id={field.id}
      label={label}
      data={hintChoices}
      value={typeof field.value === 'boolean' ? String(field.value) : null}
      placeholder="Derived from the method"
      onChange={(value) => field.set(value === null ? undefined : value === 'true')}
      error={errorText(field.errors)}
      clearable
      readOnly={field.isReadOnly}
    />
  );
}
