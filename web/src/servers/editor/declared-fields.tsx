import type { ComponentProps, ComponentType } from 'react';
import type { PathPart } from '../config.ts';
import { ChoiceField, HintField, ListField, NumberField, SwitchField, TextField } from './config-fields.tsx';
import { JsonField } from './json/json-field.tsx';

const components = {
  text: TextField,
  number: NumberField,
  list: ListField,
  choice: ChoiceField,
  switch: SwitchField,
  hint: HintField,
  json: JsonField,
};

type Kinds = typeof components;

/** A field of a form as data: its kind, the path of its value within the object that is edited, and its texts. */
export type DeclaredField = {
  [Kind in keyof Kinds]: { kind: Kind; at: string | readonly string[] } & Omit<ComponentProps<Kinds[Kind]>, 'path'>;
}[keyof Kinds];

type Props = { path: readonly PathPart[]; fields: readonly DeclaredField[] };

/** Declared fields of the object at `path`, in their order. */
export function DeclaredFields({ path, fields }: Props) {
  return fields.map(({ kind, at, ...texts }) => {
    // The type of a declaration has joined the properties to their component.
    const Field = components[kind] as ComponentType<{ path: readonly PathPart[] }>;
    const below = [at].flat();
    return <Field key={below.join('.')} path={[...path, ...below]} {...texts} />;
  });
}
