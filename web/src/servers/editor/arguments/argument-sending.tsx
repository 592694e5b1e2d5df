import { Checkbox, Select, Stack, TextInput } from '@mantine/core';
import type { JsonObject } from '../../../answers.ts';
import { Folded } from '../../../ui/folded.tsx';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { isObject, textOf } from '../../config.ts';
import { shownValue, typedValue } from './argument-value.ts';

type Props = { name: string; field: JsonObject; isReadOnly: boolean; onChange: (change: JsonObject) => void };

const styles = [
  { value: 'repeat', label: 'a=1&a=2' },
  { value: 'comma', label: 'a=1,2' },
  { value: 'brackets', label: 'a[]=1, a[b]=1' },
  { value: 'indices', label: 'a[0]=1, a[b][0]=1' },
  { value: 'deep', label: 'a[b]=1' },
  { value: 'pipe', label: 'a=1|2' },
  { value: 'space', label: 'a=1 2' },
  { value: 'json', label: 'JSON text' },
];

/** A constant as it is; the argument that holds the text as `:name`. */
function shownText(value: unknown): string {
  return isObject(value) ? `:${textOf(value.argument)}` : textOf(value);
}

function storedText(text: string): unknown {
  if (text === '') return undefined;
  return text.startsWith(':') ? { argument: text.slice(1) } : text;
}

/** The keywords that say how an argument reaches the API. */
export function ArgumentSending({ name, field, isReadOnly, onChange }: Props) {
  return (
    <Folded label="How it is sent">
      <TwoColumns>
        <TextInput
          label="Name for the API"
          aria-label={`Name of ${name} for the API`}
          description="Where it differs, such as filter[name]."
          className="th-mono"
          value={textOf(field.wire_name)}
          onChange={({ currentTarget: { value } }) => onChange({ wire_name: value === '' ? undefined : value })}
          readOnly={isReadOnly}
        />
        <Select
          label="Lists and objects"
          aria-label={`Style of ${name}`}
          description="How they are written."
          data={styles}
          placeholder="As the tool says"
          clearable
          value={textOf(field.style) || null}
          onChange={(style) => onChange({ style: style ?? undefined })}
          readOnly={isReadOnly}
        />
        <TextInput
          label="Constant"
          aria-label={`Constant of ${name}`}
          description="Sent in every call; agents neither see nor give it."
          value={shownValue(field.value)}
          onChange={(event) => onChange({ value: typedValue(event.currentTarget.value, field.type) })}
          readOnly={isReadOnly}
        />
        <Stack gap={8} justify="flex-end">
          <Checkbox
            label="Keeps its slashes in the path"
            aria-label={`${name} keeps its slashes`}
            checked={field.allow_slashes === true}
            onChange={({ currentTarget: { checked } }) => onChange({ allow_slashes: checked ? true : undefined })}
            disabled={isReadOnly}
          />
          <Checkbox
            label="Is Base64 of a file"
            aria-label={`${name} is Base64`}
            checked={field.content === 'base64'}
            onChange={({ currentTarget: { checked } }) => onChange({ content: checked ? 'base64' : undefined })}
            disabled={isReadOnly}
          />
        </Stack>
        <TextInput
          label="File name"
          aria-label={`File name of ${name}`}
          description="Of a part of multipart; :name takes it from an argument."
          value={shownText(field.file_name)}
          onChange={(event) => onChange({ file_name: storedText(event.currentTarget.value) })}
          readOnly={isReadOnly}
        />
        <TextInput
          label="Media type"
          aria-label={`Media type of ${name}`}
          description="Of a part or of the body, such as image/png."
          value={shownText(field.media_type)}
          onChange={(event) => onChange({ media_type: storedText(event.currentTarget.value) })}
          readOnly={isReadOnly}
        />
      </TwoColumns>
    </Folded>
  );
}
