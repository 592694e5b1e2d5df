import { Select, Textarea, TextInput } from '@mantine/core';
import { TagsInput } from '../../../ui/tags-input.tsx';
import { visible } from '../../../ui/text/visible.ts';
import type { Argument } from './arguments.ts';

type Props = {
  argument: Argument;
  value: string | string[] | undefined;
  onChange: (value: string | string[] | undefined) => void;
  error: string | undefined;
};

function optionText(option: unknown): string {
  return typeof option === 'string' ? option : JSON.stringify(option);
}

/** The input that fits the type of an argument. */
export function ArgumentInput({ argument, value, onChange, error }: Props) {
  const { name, type, text, isRequired, options, fallback, isTextList } = argument;
  const placeholder = fallback === undefined ? '' : optionText(fallback);
  const shared = { label: visible(name), description: visible(text), withAsterisk: isRequired, error, placeholder };
  if (options) {
    const data = [...new Set(options.map(optionText))].map((option) => ({ value: option, label: visible(option) }));
    return (
      <Select
        {...shared}
        data={data}
        value={String(value ?? '') || null}
        onChange={(next) => onChange(next ?? undefined)}
        clearable={!isRequired}
      />
    );
  }
  if (isTextList) {
    return <TagsInput {...shared} value={Array.isArray(value) ? value : []} onChange={onChange} />;
  }
  const typed = typeof value === 'string' ? value : '';
  if (type === 'object' || type === 'array') {
    return (
      <Textarea
        {...shared}
        placeholder={placeholder || (type === 'array' ? '[ … ]' : '{ … }')}
        className="th-mono"
        autosize
        minRows={2}
        value={typed}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  const mode = type === 'number' || type === 'integer' ? 'decimal' : 'text';
  return (
    <TextInput
      {...shared}
      inputMode={mode}
      value={typed}
      onChange={(event) => onChange(event.currentTarget.value)}
      autoComplete="off"
    />
  );
}
