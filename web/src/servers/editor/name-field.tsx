import { TextInput } from '@mantine/core';
import { slugFrom, textOf } from '../config.ts';
import { errorText } from './field-messages.tsx';
import { useEditor, useField } from './model/editor-context.ts';

/** The display name; the slug of a new server follows it until the slug is edited. */
export function NameField() {
  const { isNew, config, set } = useEditor();
  const field = useField(['name']);
  const before = textOf(field.value);
  const change = (name: string) => {
    field.set(name);
    if (isNew && textOf(config.slug) === slugFrom(before)) set(['slug'], slugFrom(name));
  };
  return (
    <TextInput
      id={field.id}
      label="Name"
      description="Shown to people and agents."
      withAsterisk
      value={before}
      onChange={(event) => change(event.currentTarget.value)}
      onBlur={field.touch}
      error={errorText(field.errors)}
      readOnly={field.isReadOnly}
      autoComplete="off"
    />
  );
}
