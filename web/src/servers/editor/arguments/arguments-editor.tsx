import type { JsonObject } from '../../../answers.ts';
import { isObject, type PathPart } from '../../config.ts';
import { errorText } from '../field-messages.tsx';
import { JsonField } from '../json/json-field.tsx';
import { useBlock, useField } from '../model/editor-context.ts';
import { useNamedRows } from '../model/use-named-rows.ts';
import { NamedRows } from '../named-rows.tsx';
import { ArgumentRow } from './argument-row.tsx';

/** A whole JSON Schema has a `type`; a flat map of arguments only holds objects. */
function isJsonSchema(schema: unknown): boolean {
  return isObject(schema) && ['type', '$schema', '$ref'].some((name) => typeof schema[name] === 'string');
}

/** The arguments that an agent gives: a row each, or as JSON where they are a whole JSON Schema. */
export function ArgumentsEditor({ path }: { path: readonly PathPart[] }) {
  const field = useField(path, true);
  const isEmpty = ({ description }: JsonObject) => description === undefined;
  const { rows, nameProblem, firstProblem, add, update, remove } = useNamedRows<JsonObject>(
    field.value,
    field.set,
    isEmpty,
  );
  useBlock(path, firstProblem && `the name of an argument ${firstProblem}`);
  if (isJsonSchema(field.value)) {
    return <JsonField path={path} label="Arguments" text="A JSON Schema object; edited as JSON." minRows={6} />;
  }
  return (
    <NamedRows
      label="Arguments"
      text="A :name in the URL is replaced by the argument of that name; the others go to the query or the body."
      field={field}
      rows={rows}
      addLabel="Add an argument"
      onAdd={() => add({ type: 'string' })}
    >
      {rows.map(({ name, value }, index) => (
        <ArgumentRow
          // biome-ignore lint/suspicious/noArrayIndexKey: a row has no identity but its index
          key={index}
          index={index}
          name={name}
          field={isObject(value) ? value : {}}
          path={[...path, name]}
          error={nameProblem(index) ?? errorText(field.errorsOfRow(name))}
          isReadOnly={field.isReadOnly}
          onChange={(row) => update(index, row)}
          onRemove={() => remove(index)}
        />
      ))}
    </NamedRows>
  );
}
