import { Select, Stack, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { JsonObject } from '../../../answers.ts';
import { parseJson } from '../../../exact-json.ts';
import { usePress } from '../../../ui/actions/press.ts';
import { sentence } from '../../../ui/states/problem-alert.tsx';
import { TagsInput } from '../../../ui/tags-input.tsx';
import { visibleJson } from '../../../ui/text/visible.ts';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { isObject, type PathPart, textOf } from '../../config.ts';
import { useBlock } from '../model/editor-context.ts';
import { ArgumentSending } from './argument-sending.tsx';
import { shownValue, typedValue } from './argument-value.ts';

type Props = {
  path: readonly PathPart[];
  name: string;
  field: JsonObject;
  isReadOnly: boolean;
  onChange: (change: JsonObject) => void;
};

const locations = [
  { value: 'path', label: 'Path' },
  { value: 'query', label: 'Query' },
  { value: 'header', label: 'Header' },
  { value: 'body', label: 'Body' },
];

/** What an argument may be, and how it is sent. */
export function ArgumentDetails({ path, name, field, isReadOnly, onChange }: Props) {
  return (
    <Stack gap="xs" mt="sm">
      <ArgumentGeneral path={path} name={name} field={field} isReadOnly={isReadOnly} onChange={onChange} />
      <ArgumentSending name={name} field={field} isReadOnly={isReadOnly} onChange={onChange} />
    </Stack>
  );
}

function ArgumentGeneral({ path, name, field, isReadOnly, onChange }: Props) {
  const options = Array.isArray(field.enum) ? field.enum.map(shownValue) : [];
  return (
    <TwoColumns>
      <TextInput
        label="Default"
        description="Sent when the agent leaves it out."
        value={shownValue(field.default)}
        onChange={(event) => onChange({ default: typedValue(event.currentTarget.value, field.type) })}
        readOnly={isReadOnly}
      />
      <TagsInput
        label="Allowed values"
        description="Press Enter after each; none allows all."
        value={options}
        onChange={(list) =>
          onChange({ enum: list.length > 0 ? list.map((text) => typedValue(text, field.type)) : undefined })
        }
        readOnly={isReadOnly}
      />
      <Select
        label="Goes to"
        description="Where the location by the method is not right."
        data={locations}
        placeholder="By the method"
        clearable
        value={textOf(field.in) || null}
        onChange={(location) => onChange({ in: location ?? undefined })}
        readOnly={isReadOnly}
      />
      <TextInput
        label="Format"
        description="A hint such as date, uuid or email."
        value={textOf(field.format)}
        onChange={({ currentTarget: { value } }) => onChange({ format: value === '' ? undefined : value })}
        readOnly={isReadOnly}
      />
      <TextInput
        label="Pattern"
        description="Regular expression; ^ and $ make it the whole text."
        className="th-mono"
        value={textOf(field.pattern)}
        onChange={({ currentTarget: { value } }) => onChange({ pattern: value === '' ? undefined : value })}
        readOnly={isReadOnly}
      />
      <Others path={path} name={name} field={field} isReadOnly={isReadOnly} onChange={onChange} />
    </TwoColumns>
  );
}

const own = new Set([
  ...['type', 'description', 'optional', 'default', 'enum', 'in', 'format', 'pattern'],
  ...['wire_name', 'style', 'value', 'allow_slashes', 'content', 'file_name', 'media_type'],
]);

function objectIn(text: string): JsonObject | undefined {
  try {
    const value: unknown = parseJson(text.trim() === '' ? '{}' : text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The keywords without a field of their own, such as minimum or items, as JSON. */
function Others({ path, name, field, isReadOnly, onChange }: Props) {
  const others = Object.fromEntries(Object.entries(field).filter(([key]) => !own.has(key)));
  const { beforeClick } = usePress();
  const [draft, setDraft] = useState<string>();
  const [problem, setProblem] = useState<string>();
  useBlock(path, problem);
  const change = (text: string) => {
    setDraft(text);
    const next = objectIn(text);
    setProblem(next ? undefined : 'not a JSON object yet, such as {"minimum": 1}');
    const cleared = Object.fromEntries(Object.keys(others).map((key) => [key, undefined]));
    if (next) onChange({ ...cleared, ...next });
  };
  return (
    <Textarea
      label="Other keywords"
      aria-label={`Other keywords of ${name}`}
      description='As JSON, for example {"minimum": 1}.'
      className="th-mono"
      autosize
      minRows={1}
      value={draft ?? (Object.keys(others).length > 0 ? visibleJson(others) : '')}
      onChange={(event) => change(event.currentTarget.value)}
      onBlur={() => beforeClick(() => !problem && setDraft(undefined))}
      error={problem && sentence(problem)}
      readOnly={isReadOnly}
    />
  );
}
