import { Group, TextInput } from '@mantine/core';
import { Folded } from '../../../ui/folded.tsx';
import { Section } from '../../../ui/section.tsx';
import { isObject, textOf } from '../../config.ts';
import { ListField, TextField } from '../config-fields.tsx';
import { errorText } from '../field-messages.tsx';
import { useBlock, useEdited, useField } from '../model/editor-context.ts';
import { useNamedRows } from '../model/use-named-rows.ts';
import { NamedRows, RemoveRow } from '../named-rows.tsx';
import { HeadersEditor } from './headers-editor.tsx';

/** What is written once for all tools; folded while there is none of it. */
export function ServerWideSection() {
  const isUsed = useEdited(({ config }) =>
    ['base_url', 'headers', 'forward_headers', 'variables'].some((name) => name in config),
  );
  return (
    <Section title="For all tools" text="An address, headers and values that every tool shares.">
      <Folded label="Base address, headers and variables" isOpenAtFirst={isUsed}>
        <TextField
          path={['base_url']}
          label="Base address"
          placeholder="https://api.example.com/v1"
          text="Tools whose URL begins with / are called below it."
          isMono
        />
        <HeadersEditor path={['headers']} noun="shared header" text="Sent by every tool, unless it has its own." />
        <ListField
          path={['forward_headers']}
          label="Headers passed on from the client"
          placeholder="X-Request-Id"
          text="Every tool sends them on as the MCP client sent them."
        />
        <VariablesEditor />
      </Folded>
    </Section>
  );
}

type Variable = { value: string; description?: string; enum?: string[] };

/** Values that fill {{name}}; they are not secret. */
function VariablesEditor() {
  const field = useField(['variables'], true);
  const store = (next: { [name: string]: Variable }) => field.set(Object.keys(next).length > 0 ? next : undefined);
  const { rows, nameProblem, firstProblem, add, update, remove } = useNamedRows<Variable>(
    field.value,
    store,
    (variable) => textOf(isObject(variable) ? variable.value : '') === '',
  );
  useBlock(['variables'], firstProblem && `the name of a variable ${firstProblem}`);
  return (
    <NamedRows
      label="Variables"
      text="Fill {{name}} in addresses, headers and constants. Everybody who may read the server sees them."
      field={field}
      rows={rows}
      addLabel="Add a variable"
      onAdd={() => add({ value: '' })}
    >
      {rows.map(({ name, value: variable }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row has no identity but its index
        <Group key={index} gap={6} align="flex-start">
          <TextInput
            aria-label={`Name of variable ${index + 1}`}
            placeholder="subdomain"
            value={name}
            flex="1 1 8rem"
            className="th-mono"
            error={nameProblem(index)}
            onChange={(event) => update(index, { name: event.currentTarget.value, value: variable })}
            readOnly={field.isReadOnly}
          />
          <TextInput
            aria-label={`Value of variable ${index + 1}`}
            placeholder="staging"
            value={textOf(variable?.value)}
            flex="2 1 9rem"
            className="th-mono"
            onChange={(event) => update(index, { name, value: { ...variable, value: event.currentTarget.value } })}
            onBlur={field.touch}
            error={errorText(field.errorsOfRow(name))}
            readOnly={field.isReadOnly}
          />
          <TextInput
            aria-label={`Description of variable ${index + 1}`}
            placeholder="What it is for"
            value={textOf(variable?.description)}
            flex="2 1 9rem"
            onChange={(event) => update(index, { name, value: described(variable, event.currentTarget.value) })}
            readOnly={field.isReadOnly}
          />
          {!field.isReadOnly && <RemoveRow what={`variable ${name || index + 1}`} onRemove={() => remove(index)} />}
        </Group>
      ))}
    </NamedRows>
  );
}

function described({ description: _, ...variable }: Variable, description: string): Variable {
  return description === '' ? variable : { ...variable, description };
}
