import { ActionIcon, Box, Checkbox, Group, Select, Textarea, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconDots, IconX } from '@tabler/icons-react';
import type { JsonObject } from '../../../answers.ts';
import { type PathPart, textOf } from '../../config.ts';
import { ArgumentDetails } from './argument-details.tsx';

const types = ['string', 'number', 'integer', 'boolean', 'array', 'object'];

type Props = {
  index: number;
  name: string;
  field: JsonObject;
  path: readonly PathPart[];
  /** Its problems, shown at its name. */
  error: string | undefined;
  isReadOnly: boolean;
  onChange: (row: { name: string; value: JsonObject }) => void;
  onRemove: () => void;
};

/** One argument: name, type, whether it is required, what it means; the rest behind a button. */
export function ArgumentRow({ index, name, field, path, error, isReadOnly, onChange, onRemove }: Props) {
  const [isOpen, { toggle }] = useDisclosure(false);
  const label = name || `argument ${index + 1}`;
  const store = (change: JsonObject) => {
    const next = Object.entries({ ...field, ...change }).filter(([, value]) => value !== undefined);
    onChange({ name, value: Object.fromEntries(next) });
  };
  return (
    <Box className="th-card" p="xs">
      <Group gap={6} align="flex-start">
        <TextInput
          aria-label={`Name of argument ${index + 1}`}
          placeholder="name"
          className="th-mono"
          flex="1 1 8rem"
          value={name}
          error={error}
          onChange={(event) => onChange({ name: event.currentTarget.value, value: field })}
          readOnly={isReadOnly}
        />
        <Select
          aria-label={`Type of ${label}`}
          data={types}
          w={112}
          value={textOf(field.type) || null}
          onChange={(type) => store({ type: type ?? 'string' })}
          allowDeselect={false}
          readOnly={isReadOnly}
        />
        <Checkbox
          label="Required"
          aria-label={`${label} is required`}
          mt={9}
          checked={field.optional !== true}
          onChange={(event) => store({ optional: event.currentTarget.checked ? undefined : true })}
          disabled={isReadOnly}
        />
        <Group gap={0} ml="auto" wrap="nowrap">
          <ActionIcon
            variant="subtle"
            color="gray"
            size={36}
            aria-label={`More about ${label}`}
            aria-expanded={isOpen}
            onClick={toggle}
          >
            <IconDots size={16} />
          </ActionIcon>
          {!isReadOnly && (
            <ActionIcon variant="subtle" color="gray" size={36} aria-label={`Remove ${label}`} onClick={onRemove}>
              <IconX size={16} />
            </ActionIcon>
          )}
        </Group>
      </Group>
      <Textarea
        aria-label={`Description of ${label}`}
        placeholder="What it means, for the model"
        mt={6}
        autosize
        minRows={1}
        maxRows={5}
        value={textOf(field.description)}
        onChange={({ currentTarget: { value } }) => store({ description: value === '' ? undefined : value })}
        readOnly={isReadOnly}
      />
      {isOpen && <ArgumentDetails path={path} name={label} field={field} isReadOnly={isReadOnly} onChange={store} />}
    </Box>
  );
}
