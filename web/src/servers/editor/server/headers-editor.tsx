import { Group, TextInput } from '@mantine/core';
import { type PathPart, textOf } from '../../config.ts';
import { errorText } from '../field-messages.tsx';
import { useBlock, useField } from '../model/editor-context.ts';
import { useNamedRows } from '../model/use-named-rows.ts';
import { NamedRows, RemoveRow } from '../named-rows.tsx';

type Props = { path: readonly PathPart[]; noun?: string; text?: string };

/** Headers that every request carries. */
export function HeadersEditor({ path, noun = 'header', text = 'Sent as written' }: Props) {
  const field = useField(path, true);
  const isEmpty = (value: string) => value === '';
  const { rows, nameProblem, firstProblem, add, update, remove } = useNamedRows<string>(
    field.value,
    field.set,
    isEmpty,
  );
  useBlock(path, firstProblem && `the name of a header ${firstProblem}`);
  return (
    <NamedRows
      label={noun === 'header' ? 'Headers' : `${noun[0]?.toUpperCase()}${noun.slice(1)}s`}
      text={`${text.replace(/\.$/, '')}; {{NAME}} is filled from variables and secrets.`}
      field={field}
      rows={rows}
      addLabel={`Add a ${noun}`}
      onAdd={() => add('')}
    >
      {rows.map(({ name, value }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row has no identity but its index
        <Group key={index} gap={6} align="flex-start" className="th-mono">
          <TextInput
            aria-label={`Name of ${noun} ${index + 1}`}
            placeholder="Accept"
            value={name}
            flex="1 1 9rem"
            error={nameProblem(index)}
            onChange={(event) => update(index, { name: event.currentTarget.value, value })}
            readOnly={field.isReadOnly}
          />
          <TextInput
            aria-label={`Value of ${noun} ${index + 1}`}
            placeholder="application/json"
            value={textOf(value)}
            flex="2 1 12rem"
            onChange={(event) => update(index, { name, value: event.currentTarget.value })}
            onBlur={field.touch}
            error={errorText(field.errorsOfRow(name))}
            readOnly={field.isReadOnly}
          />
          {!field.isReadOnly && <RemoveRow what={`${noun} ${name || index + 1}`} onRemove={() => remove(index)} />}
        </Group>
      ))}
    </NamedRows>
  );
}
