import { Checkbox, Select, Textarea } from '@mantine/core';
import { useSet } from '@mantine/hooks';
import { IconDots } from '@tabler/icons-react';
import type { JsonObject } from '../../../api-types.ts';
import { asText, isObject, type PathSegment, withValue } from '../../config.ts';
import { allowedValues } from '../../declared.ts';
import { isJsonSchema } from '../../try/form/arguments.ts';
import { IconButton } from '../edit-buttons.tsx';
import { Field } from '../fields.tsx';
import { useValue } from '../model/editor-context.ts';
import { NamedRows, type Row } from '../named-rows.tsx';
import { ArgumentDetails, type ArgumentRow } from './argument-details.tsx';

/** Arguments of a tool: one row each, or JSON if they are a complete JSON Schema. */
export function ArgumentsEditor({ path }: { path: readonly PathSegment[] }) {
  const schema = useValue(path);
  const openRows = useSet<number>();
  if (isObject(schema) && isJsonSchema(schema)) {
    const text = 'JSON Schema object, edited as JSON.';
    return <Field kind="json" path={path} label="Arguments" text={text} minRows={6} />;
  }
  return (
    <NamedRows<unknown>
      path={path}
      label="Arguments"
      text="Arguments replace :name in the URL. The others are sent in the query or body."
      noun="argument"
      placeholder="name"
      empty={{ type: 'string' }}
      renderBelow={(row) => (
        <>
          <Description row={toObjectRow(row)} />
          {openRows.has(row.index) && <ArgumentDetails row={toObjectRow(row)} />}
        </>
      )}
    >
      {(row) => (
        <>
          <TypeAndRequired row={toObjectRow(row)} />
          <IconButton
            label={`Details of ${row.label}`}
            icon={IconDots}
            size={36}
            ml="auto"
            aria-expanded={openRows.has(row.index)}
            onClick={() => (openRows.has(row.index) ? openRows.delete(row.index) : openRows.add(row.index))}
          />
        </>
      )}
    </NamedRows>
  );
}

/** Treats a row's value as an object. It may be anything while the JSON is being edited. */
function toObjectRow(row: Row<unknown>): ArgumentRow {
  return { ...row, value: isObject(row.value) ? row.value : {} };
}

function TypeAndRequired({ row: { label, value, change, field } }: { row: ArgumentRow }) {
  return (
    <>
      <Select
        aria-label={`Type of ${label}`}
        data={[...(allowedValues['tools.*.input_schema.*.type'] ?? [])]}
        w={112}
        value={asText(value.type) || null}
        onChange={(type) => change({ ...value, type })}
        allowDeselect={false}
        readOnly={field.isReadOnly}
      />
      <Checkbox
        label="Required"
        aria-label={`${label} is required`}
        mt={9}
        checked={value.optional !== true}
        onChange={(event) =>
          change(withValue(value, ['optional'], event.currentTarget.checked ? undefined : true) as JsonObject)
        }
        disabled={field.isReadOnly}
      />
    </>
  );
}

function Description({ row: { label, value, change, field } }: { row: ArgumentRow }) {
  return (
    <Textarea
      aria-label={`Description of ${label}`}
      placeholder="Description for the model"
      mt={6}
      autosize
      minRows={1}
      maxRows={5}
      value={asText(value.description)}
      onChange={(event) =>
        change(withValue(value, ['description'], event.currentTarget.value || undefined) as JsonObject)
      }
      readOnly={field.isReadOnly}
    />
  );
}
