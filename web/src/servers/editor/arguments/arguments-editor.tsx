import { Button, Group, Input, Stack } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import type { JsonObject } from '../../../answers.ts';
import { isObject, type PathPart } from '../../config.ts';
import { Errors, errorText, Warnings } from '../field-messages.tsx';
import { JsonField } from '../json/json-field.tsx';
import { useBlock, useField } from '../model/editor-context.ts';
import { useNamedRows } from '../model/use-named-rows.ts';
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
    <Input.Wrapper
      label="Arguments"
      description="A :name in the URL is replaced by the argument of that name; the others go to the query or the body."
      labelElement="div"
    >
      <Stack gap={6} mt={6} id={field.id} tabIndex={-1}>
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
        {!field.isReadOnly && (
          <Group>
            <Button
              variant="subtle"
              size="compact-sm"
              leftSection={<IconPlus size={14} />}
              onClick={() => add({ type: 'string' })}
            >
              Add an argument
            </Button>
          </Group>
        )}
        <Errors list={field.errorsBeside(rows.map(({ name }) => name))} />
        <Warnings list={field.warnings} />
      </Stack>
    </Input.Wrapper>
  );
}
