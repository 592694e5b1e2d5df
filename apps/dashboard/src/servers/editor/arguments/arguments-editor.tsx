import { Checkbox, Select, Textarea } from '@mantine/core';
import { useSet } from '@mantine/hooks';
import { IconDots } from '@tabler/icons-react';
import type { JsonObject } from '../../../api-types.ts';
import { Collapsible } from '../../../ui/collapsible.tsx';
import { asText, isObject, type PathSegment, withValue } from '../../config.ts';
import { allowedValues } from '../../declared.ts';
import { hasOneType, isJsonSchema, toFlatMap, withFlatMap } from '../../schema.ts';
import { IconButton } from '../edit-buttons.tsx';
import { Field, Input } from '../fields.tsx';
import { useField } from '../model/editor-context.ts';
import { NamedRows, type Row } from '../named-rows.tsx';
import { ArgumentDetails, type ArgumentRow, toEdited } from './argument-details.tsx';

/** Arguments of a tool: one row each, or JSON if they are a schema that refers to another. */
export function ArgumentsEditor({ path }: { path: readonly PathSegment[] }) {
  const { value, set } = useField(path);
  const schema = isObject(value) ? value : {};
  const texts = {
    label: 'Arguments',
    text: 'Arguments replace :name in the URL. The others are sent in the query or body.',
    noun: 'argument',
  };
  if (!isJsonSchema(schema)) return <ArgumentRows {...texts} path={path} map={schema} onChange={set} />;
  if (schema.type !== 'object' || !hasOneType(schema))
    return <Field kind="json" path={path} label="Arguments" text="JSON Schema, edited as JSON." minRows={6} />;
  return (
    <ArgumentRows
      {...texts}
      path={[...path, 'properties']}
      map={toFlatMap(schema)}
      onChange={(next) => set(withFlatMap(schema, next, true))}
      hasNullType
    />
  );
}

type RowsProps = {
  path: readonly PathSegment[];
  map: JsonObject;
  onChange: (map: JsonObject) => void;
  label: string;
  text: string;
  noun: string;
  prefix?: string;
  /** True if a definition has null in its type, false if it has `nullable`. */
  hasNullType?: boolean;
};

function ArgumentRows({ path, map, onChange, hasNullType = false, ...texts }: RowsProps) {
  const openRows = useSet<number>();
  const field = { ...useField(path, true), value: map, set: (next: unknown) => onChange(next as JsonObject) };
  return (
    <NamedRows<unknown>
      {...texts}
      field={field}
      placeholder="name"
      empty={{ type: 'string' }}
      renderBelow={(row) => {
        const argument = toArgumentRow(row);
        if (!hasOneType(argument.value)) return <Definition row={argument} />;
        return (
          <>
            <Description row={argument} />
            {openRows.has(row.index) && <ArgumentDetails row={argument} />}
            {row.name !== '' && <ObjectFields row={argument} path={[...path, row.name]} hasNullType={hasNullType} />}
          </>
        );
      }}
    >
      {(row) => (
        <>
          <TypeAndRequired row={toArgumentRow(row)} />
          <IconButton
            label={`Details of ${row.label}`}
            icon={IconDots}
            size="lg"
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
function toArgumentRow(row: Row<unknown>): ArgumentRow {
  return { ...row, value: isObject(row.value) ? row.value : {} };
}

/** Maximum number of fields that are shown without a click. */
const maxShownFields = 8;

type FieldsProps = Pick<RowsProps, 'path' | 'hasNullType'> & { row: ArgumentRow };

/** Fields of an object or of the objects in a list, as indented rows. */
function ObjectFields({ row, path, hasNullType = false }: FieldsProps) {
  const isList = row.value.type === 'array';
  const schema = isList ? row.value.items : row.value;
  if (!isObject(schema) || schema.type !== 'object') return null;
  const map = toFlatMap(schema);
  const count = Object.keys(map).length;
  const change = (next: JsonObject) => {
    const changed = withFlatMap(schema, next, hasNullType);
    row.change(isList ? { ...row.value, items: changed } : changed);
  };
  return (
    <div className="th-nested">
      <Collapsible label={`Fields of ${row.label} (${count})`} isInitiallyOpen={count > 0 && count <= maxShownFields}>
        <ArgumentRows
          label=""
          text=""
          noun={`${row.label} field`}
          prefix={`${row.label}.`}
          path={[...path, ...(isList ? ['items'] : []), 'properties']}
          map={map}
          onChange={change}
          hasNullType={hasNullType}
        />
      </Collapsible>
    </div>
  );
}

/** JSON input for the definition of an argument that may have several types or refers to another. */
function Definition({ row }: { row: ArgumentRow }) {
  const { optional, ...definition } = row.value;
  const set = (next: unknown) => {
    if (!isObject(next)) throw new Error('must be a JSON object');
    row.change({ ...next, ...(optional !== undefined && { optional }) });
  };
  return (
    <Input
      kind="json"
      edited={toEdited(row, definition, set)}
      label=""
      aria-label={`Definition of ${row.label}`}
      minRows={1}
    />
  );
}

function TypeAndRequired({ row: { label, value, change, field } }: { row: ArgumentRow }) {
  return (
    <>
      {hasOneType(value) && (
        <Select
          aria-label={`Type of ${label}`}
          data={[...(allowedValues['tools.*.input_schema.*.type'] ?? [])]}
          w={112}
          value={asText(value.type) || null}
          onChange={(type) => change({ ...value, type })}
          readOnly={field.isReadOnly}
        />
      )}
      <Checkbox
        label="Required"
        aria-label={`${label} is required`}
        mt={6}
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
      label="Description"
      aria-label={`Description of ${label}`}
      placeholder="For the model"
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
