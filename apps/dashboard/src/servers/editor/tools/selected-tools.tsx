import { Autocomplete, Button, Group, Popover, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useState } from 'react';
import type { JsonObject } from '../../../api-types.ts';
import { Form } from '../../../ui/form.tsx';
import { toVisible } from '../../../ui/text/visible.ts';
import { asList, asText, getTools, getValueAt, getViews, isObject, withValue } from '../../config.ts';
import { useEditor } from '../model/editor-context.ts';

type Props = { indexes: ReadonlySet<number>; onClear: () => void };

const buttonProps = { size: 'compact-sm', variant: 'default' } as const;

/** Actions for the selected tools. Nothing is stored until Save. */
export function SelectedTools({ indexes, onClear }: Props) {
  const { store } = useEditor();
  const getCurrentTools = () => getTools(store.getState().config);
  const updateEach = (name: string, getNext: (tool: JsonObject) => unknown) => {
    const update = (tool: JsonObject) => withValue(tool, [name], getNext(tool));
    const tools = getCurrentTools().map((tool, index) => (indexes.has(index) ? update(tool) : tool));
    store.set(['tools'], tools);
  };
  const remove = () => {
    const remaining = getCurrentTools().filter((_, index) => !indexes.has(index));
    store.set(['tools'], remaining);
    onClear();
  };
  const addToView = (view: string) => {
    const path = ['views', view, 'tools'];
    const entries = asList(getValueAt(store.getState().config, path));
    const existing = new Set(entries.map((entry) => (isObject(entry) ? entry.name : entry)));
    const names = getCurrentTools().flatMap(({ name }, index) =>
      indexes.has(index) && !existing.has(name) ? [name] : [],
    );
    store.set(path, [...entries, ...names]);
  };
  return (
    <Group gap={6} mb="xs" role="group" aria-label="Selected tools">
      <Text fw={600} mr={4} role="status">
        {indexes.size} selected
      </Text>
      <Button {...buttonProps} onClick={() => updateEach('disabled', () => undefined)}>
        Enable
      </Button>
      <Button {...buttonProps} onClick={() => updateEach('disabled', () => true)}>
        Disable
      </Button>
      <NamePrompt
        label="Tag"
        suggestions={getCurrentTools().flatMap((tool) => asList(tool.tags).map(asText))}
        placeholder="Tag, such as billing"
        onSubmit={(tag) => updateEach('tags', (tool) => [...new Set([...asList(tool.tags), tag])])}
      />
      <NamePrompt
        label="Add to view"
        suggestions={Object.keys(getViews(store.getState().config))}
        placeholder="View, such as finance"
        onSubmit={addToView}
      />
      <Button {...buttonProps} onClick={remove} c="var(--th-bad)">
        Delete
      </Button>
      <Button {...buttonProps} variant="subtle" color="gray" onClick={onClear}>
        Clear
      </Button>
    </Group>
  );
}

type NamePromptProps = {
  label: string;
  suggestions: readonly string[];
  placeholder: string;
  onSubmit: (text: string) => void;
};

/** Button that prompts for an existing or new name. */
function NamePrompt({ label, suggestions, placeholder, onSubmit }: NamePromptProps) {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const [text, setText] = useState('');
  return (
    <Popover opened={isOpen} onChange={close} trapFocus withArrow>
      <Popover.Target>
        <Button {...buttonProps} onClick={toggle} aria-expanded={isOpen}>
          {label}…
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Form
          onSubmit={() => {
            if (text.trim() === '') return;
            onSubmit(text.trim());
            setText('');
            close();
          }}
        >
          <Group gap="xs" wrap="nowrap">
            <Autocomplete
              aria-label={label}
              placeholder={placeholder}
              data={[...new Set(suggestions)].filter((name) => name !== '' && toVisible(name) === name)}
              value={text}
              onChange={setText}
              comboboxProps={{ withinPortal: false }}
              data-autofocus
            />
            <Button type="submit">Add</Button>
          </Group>
        </Form>
      </Popover.Dropdown>
    </Popover>
  );
}
